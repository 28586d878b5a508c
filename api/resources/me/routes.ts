/**
 * Returns the workspace of an API key, or the user of a session. The reply is not wrapped in `data`.
 *
 * Callers: API keys and sessions.
 */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing, notAuthenticated } from '#api/errors.ts';
import { findUser, type User as UserRow } from '#api/resources/accounts/store.ts';
import { findWorkspace } from '#api/resources/workspaces/store.ts';

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
  twoFactorEnabled: Type.Literal(false),
  identityProvider: Type.String(),
  notificationSettings: Type.Unknown(),
  locale: Type.String(),
  lastLoginAt: Type.Union([Type.String(), Type.Null()]),
  isActive: Type.Boolean(),
});

export const meRoutes: Routes = async (app, { context }) => {
  for (const url of ['/api/v1/management/me', '/api/v1/me']) {
    app.get(
      url,
      {
        schema: {
          summary: 'Read whose key or session this is',
          response: { 200: Type.Union([Account, User]) },
        },
        config: { needsNoWorkspace: true },
      },
      async (request) => {
        const principal = principalOf(request);
        if (principal.kind === 'session') return userReply(await findUser(context.db, principal.userId));
        const [workspaceId, ...others] = principal.permissions.keys();
        if (workspaceId === undefined || others.length > 0) {
          throw badRequest('This key does not reach exactly one workspace; use GET /api/v2/me instead');
        }
        const workspace = existing(await findWorkspace(context.db, workspaceId), 'Workspace', workspaceId);
        const { id, name } = workspace;
        return {
          ...workspace,
          id: workspace.environmentId,
          type: 'production',
          workspace: { id, name },
          project: { id, name },
        };
      },
    );
  }
};

/** @param user null if the user was deleted after the session was checked */
function userReply(user: UserRow | null) {
  if (user === null) throw notAuthenticated();
  return {
    id: user.id,
    name: user.name,
    email: user.email,
    emailVerified: user.emailVerified,
    createdAt: user.createdAt,
    updatedAt: user.updatedAt,
    twoFactorEnabled: false as const,
    identityProvider: user.identityProvider,
    notificationSettings: JSON.parse(user.notificationSettings),
    locale: user.locale,
    lastLoginAt: user.lastLoginAt,
    isActive: user.isActive === 1,
  };
}
