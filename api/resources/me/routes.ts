/** Whose key is this? Needs a key (contract management-api.md §8). The reply is not wrapped in `data` (SPEC.md §4). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import type { Context } from '#api/context.ts';
import { badRequest, notFound } from '#api/errors.ts';
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

export const meRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  for (const url of ['/api/v1/management/me', '/api/v1/me']) {
    app.get(
      url,
      { schema: { response: { 200: Account } }, config: { acceptsKeyWithoutWorkspace: true } },
      async (request) => {
        const [workspaceId, ...others] = principalOf(request).permissions.keys();
        if (workspaceId === undefined || others.length > 0) {
          throw badRequest('This key does not reach exactly one workspace; use GET /api/v2/me instead');
        }
        const workspace = await findWorkspace(context.db, workspaceId);
        if (workspace === null) throw notFound('Workspace', workspaceId);
        const { id, name } = workspace;
        return {
          id: workspace.environmentId,
          type: 'production',
          createdAt: workspace.createdAt,
          updatedAt: workspace.updatedAt,
          appSetupCompleted: workspace.appSetupCompleted,
          websiteSetupCompleted: workspace.websiteSetupCompleted,
          workspace: { id, name },
          project: { id, name },
        };
      },
    );
  }
};
