/**
 * Lists the webhooks of the user's workspaces by their source. Other services integrate through webhooks, which store
 * who created them, so there are no other integrations.
 *
 * Callers: sessions.
 */
import { Type } from 'typebox';
import { forPeople, readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';

const Integration = Type.Object({
  source: Type.String(),
  workspaceId: Type.String(),
  webhookCount: Type.Integer(),
  lastChangedAt: Type.String(),
});

const Source = Type.Object({ source: Type.Optional(Type.String()) });

export const integrationRoutes: Routes = async (app, { context }) => {
  const list = async (workspaceIds: readonly string[], source: string | null) => {
    if (workspaceIds.length === 0) return [];
    let query = context.db
      .selectFrom('webhooks')
      .select((select) => [
        'source',
        'workspaceId',
        select.fn.countAll().as('count'),
        select.fn.max('updatedAt').as('lastChangedAt'),
      ])
      .where('workspaceId', 'in', workspaceIds)
      .groupBy(['source', 'workspaceId'])
      .orderBy('source')
      .orderBy('workspaceId');
    if (source !== null) query = query.where('source', '=', source);
    const rows = await query.execute();
    return rows.map(({ count, ...row }) => ({ ...row, webhookCount: Number(count) }));
  };
  const response = {
    200: Type.Object({
      data: Type.Array(Integration),
      meta: Type.Object({ about: Type.String() }),
    }),
  };
  const meta = {
    about: 'Integrations are webhooks, by who made them; manage them at /api/v1/webhooks',
  };

  for (const url of ['/api/v1/integrations', '/api/v1/integrations/:source']) {
    app.get(url, { schema: { params: Source, response }, config: forPeople }, async (request) => ({
      data: await list(readableWorkspaces(request), request.params.source ?? null),
      meta,
    }));
  }
};
