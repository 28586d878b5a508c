/**
 * The members of a team, and its workspaces. PUT adds or changes, so repeating a request has no further effect.
 *
 * Callers: sessions. Owners, managers and the team's admins change its members, and members may leave. Only owners
 * and managers change its workspaces.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { forPeople } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { notFound } from '#api/errors.ts';
import { requireManager, requireMember } from '#api/resources/organizations/access.ts';
import { roleOf } from '#api/resources/organizations/store.ts';
import { findWorkspace } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { managedTeam, staffedTeam } from './access.ts';
import { TeamDetailsReply, TeamPermissionName, TeamRoleName } from './schema.ts';
import {
  removeTeamMember,
  removeTeamWorkspace,
  setTeamMember,
  setTeamWorkspace,
  type Team,
  withDetails,
} from './store.ts';

const MemberPath = Type.Object({
  organizationId: Type.String(),
  teamId: Type.String(),
  userId: Type.String(),
});
const WorkspacePath = Type.Object({
  organizationId: Type.String(),
  teamId: Type.String(),
  workspaceId: Type.String(),
});
const response = { 200: Type.Object({ data: TeamDetailsReply }) };

export const teamContentRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const url = '/api/v1/organizations/:organizationId/teams/:teamId';

  app.put(
    `${url}/members/:userId`,
    {
      schema: { params: MemberPath, body: Type.Object({ role: TeamRoleName }), response },
      config: forPeople,
      onRequest: requireMember,
    },
    async (request) => {
      const { organizationId, userId } = request.params;
      const { role } = request.body;
      return change(async (trx) => {
        const team = await staffedTeam(trx, request, { ...request.params, leaves: null });
        if ((await roleOf(trx, organizationId, userId)) === null) throw notFound('Member', userId);
        await setTeamMember(trx, { teamId: team.id, userId, role }, toTimestamp(clock()));
        return team;
      });
    },
  );

  app.delete(
    `${url}/members/:userId`,
    { schema: { params: MemberPath, response }, config: forPeople, onRequest: requireMember },
    async (request) => {
      const { userId } = request.params;
      return change(async (trx) => {
        const team = await staffedTeam(trx, request, { ...request.params, leaves: userId });
        if (!(await removeTeamMember(trx, team.id, userId))) throw notFound('Member', userId);
        return team;
      });
    },
  );

  app.put(
    `${url}/workspaces/:workspaceId`,
    {
      schema: { params: WorkspacePath, body: Type.Object({ permission: TeamPermissionName }), response },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request) => {
      const { permission } = request.body;
      return change(async (trx) => {
        const team = await managedTeam(trx, request, request.params);
        const workspaceId = await workspaceIn(trx, request, team);
        await setTeamWorkspace(trx, { teamId: team.id, workspaceId, permission }, toTimestamp(clock()));
        return team;
      });
    },
  );

  app.delete(
    `${url}/workspaces/:workspaceId`,
    { schema: { params: WorkspacePath, response }, config: forPeople, onRequest: requireManager },
    async (request) =>
      change(async (trx) => {
        const team = await managedTeam(trx, request, request.params);
        const workspaceId = await workspaceIn(trx, request, team);
        if (!(await removeTeamWorkspace(trx, team.id, workspaceId))) {
          throw notFound('Workspace Team', workspaceId);
        }
        return team;
      }),
  );

  async function change(work: (trx: Database) => Promise<Team>) {
    return db.transaction().execute(async (trx) => {
      return { data: await withDetails(trx, await work(trx)) };
    });
  }
};

/** @returns the id of the path's workspace, which older clients call an environment @throws ApiError not_found */
async function workspaceIn(
  trx: Database,
  request: FastifyRequest<{ Params: { workspaceId: string } }>,
  { organizationId }: Team,
): Promise<string> {
  const { workspaceId } = request.params;
  const workspace = await findWorkspace(trx, workspaceId);
  if (workspace === null || workspace.organizationId !== organizationId) {
    throw notFound('Workspace', workspaceId);
  }
  return workspace.id;
}
