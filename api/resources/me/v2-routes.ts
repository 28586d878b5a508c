/**
 * Returns the workspaces and the organization of an API key, and the list of roles.
 *
 * Callers: API keys. `/me` needs the right to read the organization.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { notAuthenticated, unauthorized } from '#api/errors.ts';

const WorkspacePermission = Type.Object({
  permissions: Type.String(),
  workspaceId: Type.String(),
  workspaceName: Type.String(),
});
const EnvironmentPermission = Type.Object({
  permissions: Type.String(),
  environmentId: Type.String(),
  environmentType: Type.String(),
  projectId: Type.String(),
  projectName: Type.String(),
});

/** Both routes serve a key without access to a workspace. */
const config = { needsNoWorkspace: true } as const;

export const v2MeRoutes: Routes = async (app, { context }) => {
  app.get(
    '/api/v2/roles',
    { schema: { response: { 200: Type.Object({ data: Type.Array(Type.String()) }) } }, config },
    async () => ({ data: ['owner', 'manager', 'member'] }),
  );

  app.get(
    '/api/v2/me',
    {
      schema: {
        summary: 'Read whose key this is',
        response: {
          200: Type.Object({
            data: Type.Object({
              workspacePermissions: Type.Array(WorkspacePermission),
              environmentPermissions: Type.Array(EnvironmentPermission),
              organizationId: Type.String(),
              organizationAccess: Type.Object({
                accessControl: Type.Object({ read: Type.Boolean(), write: Type.Boolean() }),
              }),
            }),
          }),
        },
      },
      config,
    },
    async (request) => {
      const principal = principalOf(request);
      if (principal.kind !== 'apiKey') throw notAuthenticated();
      const { organizationId, organizationAccess, permissions } = principal;
      if (!organizationAccess.read) throw unauthorized();
      const ids = [...permissions.keys()];
      const workspaces =
        ids.length === 0
          ? []
          : await context.db
              .selectFrom('workspaces')
              .select(['id', 'name', 'legacyEnvironmentId'])
              .where('id', 'in', ids)
              .orderBy('id')
              .execute();
      const permissionOf = (id: string): string => permissions.get(id) ?? 'read';
      return {
        data: {
          workspacePermissions: workspaces.map(({ id, name }) => ({
            permissions: permissionOf(id),
            workspaceId: id,
            workspaceName: name,
          })),
          // List only workspaces that have another id for older clients.
          environmentPermissions: workspaces.flatMap(({ id, name, legacyEnvironmentId }) =>
            legacyEnvironmentId === null
              ? []
              : {
                  permissions: permissionOf(id),
                  environmentId: legacyEnvironmentId,
                  environmentType: 'production',
                  projectId: id,
                  projectName: name,
                },
          ),
          organizationId,
          organizationAccess: { accessControl: organizationAccess },
        },
      };
    },
  );
};
