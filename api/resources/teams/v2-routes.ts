/**
 * Teams of an organization, on v2.
 *
 * Callers: API keys of the organization. GET needs the right to read the organization, everything else to write it.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { existing } from '#api/errors.ts';
import { ListMeta, listQuery, pageFrom, readV2Page } from '#api/http/v2-pagination.ts';
import {
  aboutOrganization,
  lockOrganization,
  requireOrganizationAccess,
} from '#api/resources/organizations/key-access.ts';
import { visibleName } from '#api/resources/organizations/name.ts';
import { Id } from '#api/schemas.ts';
import { NewTeam, TeamReply } from './schema.ts';
import { deleteTeam, findTeam, findTeams, type Team } from './store.ts';
import { changeTeamName, createTeam } from './write.ts';

const url = '/api/v2/organizations/:organizationId/teams';
const oneUrl = `${url}/:id`;

const OrganizationPath = Type.Object({ organizationId: Id });
const TeamPath = Type.Object({ organizationId: Id, id: Id });
const One = Type.Object({ data: TeamReply });
const onRequest = requireOrganizationAccess;

export const v2TeamRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  app.get(
    url,
    {
      schema: {
        params: OrganizationPath,
        querystring: Type.Object(listQuery),
        response: { 200: Type.Object({ data: Type.Array(TeamReply), meta: ListMeta }) },
      },
      config: aboutOrganization,
      onRequest,
    },
    async (request) => {
      const page = pageFrom(request.query);
      const { organizationId } = request.params;
      const matching = db.selectFrom('teams').where('organizationId', '=', organizationId);
      return readV2Page(matching, page, (ids) => findTeams(db, ids));
    },
  );

  app.post(
    url,
    {
      schema: { params: OrganizationPath, body: NewTeam, response: { 201: One } },
      config: { ...aboutOrganization, refuses: ['forbidden', 'conflict'] },
      onRequest,
    },
    async (request, reply) => {
      const { organizationId } = request.params;
      const name = visibleName(request.body.name);
      const made = await createTeam(context, { organizationId, name }, (trx) =>
        lockOrganization(trx, organizationId),
      );
      return reply.code(201).send({ data: made });
    },
  );

  app.get(
    oneUrl,
    {
      schema: { params: TeamPath, response: { 200: One } },
      config: { ...aboutOrganization, refuses: ['not_found'] },
      onRequest,
    },
    async (request) => ({ data: await teamIn(db, request.params) }),
  );

  app.put(
    oneUrl,
    {
      schema: { params: TeamPath, body: NewTeam, response: { 200: One } },
      config: { ...aboutOrganization, refuses: ['not_found', 'conflict'] },
      onRequest,
    },
    async (request) => {
      const { params } = request;
      const name = visibleName(request.body.name);
      return changeTeamName(
        context,
        name,
        (trx) => teamToChange(trx, params),
        async (_trx, team) => ({ data: team }),
      );
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: TeamPath, response: { 200: One } },
      config: { ...aboutOrganization, refuses: ['not_found'] },
      onRequest,
    },
    async (request) =>
      db.transaction().execute(async (trx) => {
        const team = await teamToChange(trx, request.params);
        await deleteTeam(trx, team.id);
        return { data: team };
      }),
  );
};

interface Path {
  readonly organizationId: string;
  readonly id: string;
}

async function teamToChange(trx: Database, path: Path): Promise<Team> {
  await lockOrganization(trx, path.organizationId);
  return teamIn(trx, path);
}

async function teamIn(db: Database, { organizationId, id }: Path): Promise<Team> {
  return existing(await findTeam(db, organizationId, id), 'Team', id);
}
