/** Contact attribute keys on v3: a list for reading. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { isAfter, pageOf, readCursor } from '#api/http/cursor-pagination.ts';
import {
  CursorMeta,
  LIMIT_DEFAULT,
  SORTED_BY,
  TextOrNull,
  WorkspaceListQuery,
} from '#api/http/workspace-list.ts';
import { readableWorkspace } from '#api/resources/workspaces/v3-access.ts';

const AttributeKey = Type.Object({
  id: Type.String(),
  key: Type.String(),
  name: TextOrNull,
  description: TextOrNull,
  type: Type.String(),
  dataType: Type.String(),
});

export const v3AttributeKeyRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db } = context;

  app.get(
    '/api/v3/contact-attribute-keys',
    {
      schema: {
        querystring: WorkspaceListQuery,
        response: { 200: Type.Object({ data: Type.Array(AttributeKey), meta: CursorMeta }) },
      },
    },
    async (request) => {
      const { limit = LIMIT_DEFAULT } = request.query;
      const cursor = readCursor(request.query.cursor, SORTED_BY);
      const workspace = await readableWorkspace(context, request, request.query.workspaceId);
      let query = db
        .selectFrom('contactAttributeKeys')
        .select(['id', 'key', 'name', 'description', 'type', 'dataType', 'createdAt'])
        .where('workspaceId', '=', workspace.id);
      if (cursor !== null) query = query.where(isAfter(cursor));
      const found = await query
        .orderBy('createdAt')
        .orderBy('id')
        .limit(limit + 1)
        .execute();
      const { rows, nextCursor } = pageOf(found, limit, SORTED_BY, (row) => row.createdAt);
      return { data: [...rows], meta: { limit, nextCursor } };
    },
  );
};
