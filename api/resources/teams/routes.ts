/**
 * Teams of an organization.
 *
 * Callers: sessions. Owners and managers may do everything; members see the teams that they are in.
 */
import { Type } from 'typebox';
import { forPeople } from '#api/auth/plugin.ts';
import { runsOrganization } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { actorIn, managerNow, requireManager, requireMember } from '#api/resources/organizations/access.ts';
import { visibleName } from '#api/resources/organizations/name.ts';
import { managedTeam, visibleTeam } from './access.ts';
import { NewTeam, TeamDetailsReply, TeamReply } from './schema.ts';
import { deleteTeam, listTeams, withDetails } from './store.ts';
import { changeTeamName, createTeam, TEAMS_MAX } from './write.ts';

const OrganizationPath = Type.Object({ organizationId: Type.String() });
const TeamPath = Type.Object({ organizationId: Type.String(), teamId: Type.String() });

export const teamRoutes: Routes = async (app, { context }) => {
  const { db } = context;
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
      const made = await createTeam(context, { organizationId, name }, (trx) =>
        managerNow(trx, request, organizationId),
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
      data: await withDetails(db, await visibleTeam(db, request, request.params)),
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
      return changeTeamName(
        context,
        name,
        (trx) => managedTeam(trx, request, request.params),
        async (trx, team) => ({ data: await withDetails(trx, team) }),
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
        return { data: details };
      }),
  );
};
