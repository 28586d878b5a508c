/**
 * Permissions of teams in the workspaces of their organization, on v2. `project-teams` is the older name of the path.
 *
 * Callers: API keys of the organization. GET needs the right to read the organization, everything else to write it.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { countRows } from '#api/db/count.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, conflict, existing, notFound } from '#api/errors.ts';
import { ListMeta, listQuery, pageFrom, withinDates } from '#api/http/v2-pagination.ts';
import {
  aboutOrganization,
  lockOrganization,
  requireOrganizationAccess,
} from '#api/resources/organizations/key-access.ts';
import { findWorkspace } from '#api/resources/workspaces/store.ts';
import { Id } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { TeamPermissionName } from './schema.ts';
import {
  findTeam,
  findTeamWorkspace,
  removeTeamWorkspace,
  setTeamWorkspace,
  type TeamWorkspace,
  teamWorkspacesOf,
} from './store.ts';

const OrganizationPath = Type.Object({ organizationId: Id });
/** Path parameters. Older clients call a workspace a project. */
const pair = { teamId: Id, workspaceId: Type.Optional(Id), projectId: Type.Optional(Id) };
const Permission = Type.Object({ ...pair, permission: TeamPermissionName });
const Reply = Type.Object({
  createdAt: Type.String(),
  updatedAt: Type.String(),
  workspaceId: Type.String(),
  projectId: Type.String(),
  teamId: Type.String(),
  permission: TeamPermissionName,
});
const One = Type.Object({ data: Reply });

export const v2WorkspaceTeamRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const onRequest = requireOrganizationAccess;

  for (const name of ['workspace-teams', 'project-teams']) {
    const url = `/api/v2/organizations/:organizationId/${name}`;

    app.get(
      url,
      {
        schema: {
          params: OrganizationPath,
          querystring: Type.Object({
            ...listQuery,
            teamId: Type.Optional(Id),
            workspaceId: Type.Optional(Id),
            projectId: Type.Optional(Id),
          }),
          response: { 200: Type.Object({ data: Type.Array(Reply), meta: ListMeta }) },
        },
        config: aboutOrganization,
        onRequest,
      },
      async (request) => {
        const { organizationId } = request.params;
        const { teamId = null, workspaceId, projectId } = request.query;
        const page = pageFrom(request.query);
        const only = { teamId, workspaceId: workspaceId ?? projectId ?? null };
        const matching = withinDates(teamWorkspacesOf(db, organizationId, only), page);
        const total = await countRows(matching);
        const rows = await matching
          .selectAll()
          .orderBy(page.sortBy, page.order)
          .orderBy('teamId', page.order)
          .orderBy('workspaceId', page.order)
          .limit(page.limit)
          .offset(page.skip)
          .execute();
        return { data: rows.map(toReply), meta: { total, limit: page.limit, offset: page.skip } };
      },
    );

    app.post(
      url,
      {
        schema: { params: OrganizationPath, body: Permission, response: { 201: One } },
        config: { ...aboutOrganization, refuses: ['bad_request', 'not_found', 'conflict'] },
        onRequest,
      },
      async (request, reply) => {
        const made = await change(request.params.organizationId, request.body, async (trx, place, known) => {
          const problem = 'The team has a permission in this workspace already; change it with PUT';
          if (known !== null) throw conflict(problem, { teamId: problem });
          await setTeamWorkspace(
            trx,
            { ...place, permission: request.body.permission },
            toTimestamp(clock()),
          );
        });
        return reply.code(201).send({ data: made });
      },
    );

    app.put(
      url,
      {
        schema: { params: OrganizationPath, body: Permission, response: { 200: One } },
        config: { ...aboutOrganization, refuses: ['bad_request', 'not_found'] },
        onRequest,
      },
      async (request) => ({
        data: await change(request.params.organizationId, request.body, async (trx, place, known) => {
          if (known === null) throw notFound('Workspace Team', place.workspaceId);
          await setTeamWorkspace(
            trx,
            { ...place, permission: request.body.permission },
            toTimestamp(clock()),
          );
        }),
      }),
    );

    app.delete(
      url,
      {
        schema: { params: OrganizationPath, querystring: Type.Object(pair), response: { 200: One } },
        config: { ...aboutOrganization, refuses: ['bad_request', 'not_found'] },
        onRequest,
      },
      async (request) => ({
        data: await change(request.params.organizationId, request.query, async (trx, place, known) => {
          if (known === null) throw notFound('Workspace Team', place.workspaceId);
          await removeTeamWorkspace(trx, place.teamId, place.workspaceId);
        }),
      }),
    );
  }

  /**
   * Finds both, and the current permission of the team. @returns the permission after the work; if it was deleted, the
   * one before
   */
  async function change(
    organizationId: string,
    given: { readonly teamId: string; readonly workspaceId?: string; readonly projectId?: string },
    work: (
      trx: Database,
      place: { readonly teamId: string; readonly workspaceId: string },
      known: TeamWorkspace | null,
    ) => Promise<void>,
  ) {
    const scope = given.workspaceId ?? given.projectId;
    if (scope === undefined) {
      const problem = 'workspaceId must be provided';
      throw badRequest(problem, { workspaceId: problem });
    }
    return db.transaction().execute(async (trx) => {
      await lockOrganization(trx, organizationId);
      const workspace = await findWorkspace(trx, scope);
      if (workspace === null || workspace.organizationId !== organizationId) {
        throw notFound('Workspace', scope);
      }
      if ((await findTeam(trx, organizationId, given.teamId)) === null) throw notFound('Team', given.teamId);
      const place = { teamId: given.teamId, workspaceId: workspace.id };
      const known = await findTeamWorkspace(trx, place.teamId, place.workspaceId);
      await work(trx, place, known);
      const now = existing(
        (await findTeamWorkspace(trx, place.teamId, place.workspaceId)) ?? known,
        'Workspace Team',
        scope,
      );
      return toReply(now);
    });
  }
};

function toReply(row: TeamWorkspace) {
  return { ...row, projectId: row.workspaceId };
}
