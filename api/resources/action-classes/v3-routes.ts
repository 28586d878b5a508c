/** Action classes and attribute keys on v3 (contract v2-v3.md B6). Needs a key or a session with read on the workspace. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { isAfter, pageOf, readCursor } from '#api/http/cursor-pagination.ts';
import { readableWorkspace } from '#api/resources/workspaces/v3-access.ts';
import { Id } from '#api/schemas.ts';

const LIMIT_DEFAULT = 50;
const SORTED_BY = 'createdAt';

const Query = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });
const Meta = Type.Object({ limit: Type.Integer(), nextCursor: TextOrNull });

const ActionClass = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: TextOrNull,
  type: Type.String(),
  key: TextOrNull,
});
const AttributeKey = Type.Object({
  id: Type.String(),
  key: Type.String(),
  name: TextOrNull,
  description: TextOrNull,
  type: Type.String(),
  dataType: Type.String(),
});

export const v3SmallRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db } = context;

  app.get(
    '/api/v3/action-classes',
    {
      schema: {
        querystring: Query,
        response: { 200: Type.Object({ data: Type.Array(ActionClass), meta: Meta }) },
      },
    },
    async (request) => {
      const { limit = LIMIT_DEFAULT } = request.query;
      const cursor = readCursor(request.query.cursor, SORTED_BY);
      const workspace = await readableWorkspace(context, request, request.query.workspaceId);
      let query = db
        .selectFrom('actionClasses')
        .select(['id', 'name', 'description', 'type', 'key', 'createdAt'])
        .where('workspaceId', '=', workspace.id)
        // Built-in ones are older than v3 and not shown here.
        .where('type', '!=', 'automatic');
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

  app.get(
    '/api/v3/contact-attribute-keys',
    {
      schema: {
        querystring: Query,
        response: { 200: Type.Object({ data: Type.Array(AttributeKey), meta: Meta }) },
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
