/**
 * Tells whose key or session a request has: v1 the workspace of a key, or the user of a session, v2 all workspaces of a
 * key. The reply of v1 is not wrapped in `data`.
 *
 * Callers: API keys, and on v1 sessions.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, notAuthenticated } from '#api/errors.ts';
import { findUser } from '#api/resources/accounts/store.ts';
import { listWorkspaces } from '#api/resources/workspaces/store.ts';

const IdAndName = Type.Object({ id: Type.String(), name: Type.String() });

const Account = Type.Object({
  id: Type.String(),
  type: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  appSetupCompleted: Type.Boolean(),
  websiteSetupCompleted: Type.Boolean(),
  workspace: IdAndName,
  project: IdAndName,
});

/** Clients expect exactly these keys. */
const User = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  emailVerified: Type.Union([Type.String(), Type.Null()]),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  /** These five are the same for everybody. */
  twoFactorEnabled: Type.Literal(false),
  identityProvider: Type.String(),
  notificationSettings: Type.Unknown(),
  locale: Type.String(),
  isActive: Type.Boolean(),
  lastLoginAt: Type.Union([Type.String(), Type.Null()]),
});

const Key = Type.Object({
  workspacePermissions: Type.Array(
    Type.Object({ permissions: Type.String(), workspaceId: Type.String(), workspaceName: Type.String() }),
  ),
  /** Always empty: a workspace has no second id. */
  environmentPermissions: Type.Array(Type.Unknown()),
  organizationId: Type.String(),
  organizationAccess: Type.Object({
    accessControl: Type.Object({ read: Type.Boolean(), write: Type.Boolean() }),
  }),
});

const summary = 'Read whose key or session this is';
/** The routes serve a key without access to a workspace. */
const config = { needsNoWorkspace: true } as const;

export const meRoutes: Routes = async (app, { context }) => {
  const response = { 200: Type.Union([Account, User]) };
  for (const url of ['/api/v1/management/me', '/api/v1/me']) {
    app.get(url, { schema: { summary, response }, config }, async (request) => {
      const principal = principalOf(request);
      if (principal.kind === 'session') return userReply(context, principal.userId);
      const [workspace, ...others] = await listWorkspaces(context.db, principal.permissions.keys());
      if (workspace === undefined || others.length > 0) {
        throw badRequest('This key does not reach exactly one workspace; use GET /api/v2/me instead');
      }
      const { id, name } = workspace;
      return { ...workspace, type: 'production', workspace: { id, name }, project: { id, name } };
    });
  }
};

export const v2MeRoutes: Routes = async (app, { context }) => {
  const response = { 200: Type.Object({ data: Key }) };
  app.get('/api/v2/me', { schema: { summary, response }, config }, async (request) => {
    const principal = principalOf(request);
    if (principal.kind !== 'apiKey') throw notAuthenticated();
    const { organizationId, permissions } = principal;
    const workspaces = await listWorkspaces(context.db, permissions.keys());
    return {
      data: {
        workspacePermissions: workspaces.map(({ id, name }) => ({
          permissions: permissions.get(id) ?? 'read',
          workspaceId: id,
          workspaceName: name,
        })),
        environmentPermissions: [],
        organizationId,
        organizationAccess: { accessControl: { read: true, write: false } },
      },
    };
  });
};

async function userReply({ db }: Context, userId: string) {
  const user = await findUser(db, userId);
  // The user was deleted after the session was checked.
  if (user === null) throw notAuthenticated();
  return {
    ...user,
    twoFactorEnabled: false as const,
    identityProvider: 'email',
    notificationSettings: {},
    locale: 'en-US',
    isActive: true,
  };
}
