/**
 * Teams of an organization.
 *
 * Callers: sessions. Owners and managers may do everything; members see the teams that they are in.
 */
import { Type } from 'typebox';
import { forPeople } from '#api/auth/plugin.ts';
import { runsOrganization } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { conflict, forbidden } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { actorIn, managerNow, requireManager, requireMember } from '#api/resources/organizations/access.ts';
import { visibleName } from '#api/resources/organizations/name.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { managedTeam, visibleTeam } from './access.ts';
import { NewTeam, TeamDetailsReply, TeamReply } from './schema.ts';
import {
  countTeams,
  deleteTeam,
  insertTeam,
  listTeams,
  renameTeam,
  type Team,
  type TeamDetails,
  withDetails,
} from './store.ts';

const TEAMS_MAX = 200;

const OrganizationPath = Type.Object({ organizationId: Type.String() });
const TeamPath = Type.Object({ organizationId: Type.String(), teamId: Type.String() });

export const teamRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const url = '/api/v1/organizations/:organizationId/teams';
  const oneUrl = `${url}/:teamId`;

  app.get(
    url,
    {
      schema: {
        params: OrganizationPath,
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(TeamReply) }) },
      },
      config: forPeople,
      onRequest: requireMember,
    },
    async (request, reply) => {
      const { organizationId } = request.params;
      const { role, userId } = actorIn(request, organizationId);
      const whose = runsOrganization(role) ? null : userId;
      return {
        data: await readPage({ request, reply }, request.query, { limitMax: TEAMS_MAX }, (page) =>
          listTeams(db, organizationId, whose, page),
        ),
      };
    },
  );

  app.post(
    url,
    {
      schema: {
        params: OrganizationPath,
        body: NewTeam,
        response: { 200: Type.Object({ data: TeamDetailsReply }) },
      },
      config: { ...forPeople, refuses: ['forbidden', 'conflict'] },
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId } = request.params;
      const name = visibleName(request.body.name);
      const now = toTimestamp(clock());
      const made: Team = { id: newId(random), organizationId, name, createdAt: now, updatedAt: now };
      await withFreeName(name, () =>
        db.transaction().execute(async (trx) => {
          await managerNow(trx, request, organizationId);
          if ((await countTeams(trx, organizationId)) >= TEAMS_MAX) {
            throw forbidden(`An organization can have ${TEAMS_MAX} teams; delete one that nobody needs`);
          }
          await insertTeam(trx, made);
        }),
      );
      return { data: { ...made, members: [], workspaces: [] } };
    },
  );

  app.get(
    oneUrl,
    {
      schema: { params: TeamPath, response: { 200: Type.Object({ data: TeamDetailsReply }) } },
      config: forPeople,
      onRequest: requireMember,
    },
    async (request) => ({
      data: toReply(await withDetails(db, await visibleTeam(db, request, request.params))),
    }),
  );

  app.put(
    oneUrl,
    {
      schema: {
        params: TeamPath,
        body: NewTeam,
        response: { 200: Type.Object({ data: TeamDetailsReply }) },
      },
      config: { ...forPeople, refuses: ['conflict'] },
      onRequest: requireManager,
    },
    async (request) => {
      const name = visibleName(request.body.name);
      return withFreeName(name, () =>
        db.transaction().execute(async (trx) => {
          const team = await managedTeam(trx, request, request.params);
          const updatedAt = toTimestamp(clock());
          await renameTeam(trx, team.id, name, updatedAt);
          return { data: toReply(await withDetails(trx, { ...team, name, updatedAt })) };
        }),
      );
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: TeamPath, response: { 200: Type.Object({ data: TeamDetailsReply }) } },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request) =>
      db.transaction().execute(async (trx) => {
        const team = await managedTeam(trx, request, request.params);
        const details = await withDetails(trx, team);
        await deleteTeam(trx, team.id);
        return { data: toReply(details) };
      }),
  );
};

function withFreeName<T>(name: string, work: () => Promise<T>): Promise<T> {
  const taken = conflict(`A team with the name ${name} already exists`);
  return unlessTaken(['teams.organizationId', 'teams.name'], taken, work);
}

function toReply({ members, workspaces, ...team }: TeamDetails) {
  return { ...team, members: [...members], workspaces: [...workspaces] };
}
