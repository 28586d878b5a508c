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
const response = { 200: Type.Object({ data: Type.Array(Integration) }) };

export const integrationRoutes: Routes = async (app, { context }) => {
  app.get('/api/v1/integrations', { schema: { response }, config: forPeople }, async (request) => {
    const workspaceIds = readableWorkspaces(request);
    if (workspaceIds.length === 0) return { data: [] };
    const rows = await context.db
      .selectFrom('webhooks')
      .select(['source', 'workspaceId'])
      .select(({ fn }) => [fn.countAll().as('count'), fn.max('updatedAt').as('lastChangedAt')])
      .where('workspaceId', 'in', workspaceIds)
      .groupBy(['source', 'workspaceId'])
      .orderBy('source')
      .orderBy('workspaceId')
      .execute();
    return { data: rows.map(({ count, ...row }) => ({ ...row, webhookCount: Number(count) })) };
  });
};
