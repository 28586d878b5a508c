/**
 * A read-only list on v3: rows of one workspace, the oldest first, ties by id, in pages with a cursor.
 *
 * Callers need the right to read the workspace.
 */
import type { FastifyInstance } from 'fastify';
import { type SelectQueryBuilder, sql } from 'kysely';
import { type Static, type TSchema, Type } from 'typebox';
import type { Tables, Timestamp } from '#api/db/schema.ts';
import { isAfter, pageOf, readCursor } from '#api/http/cursor-pagination.ts';
import { Id, TextOrNull } from '#api/values/schemas.ts';
import { v3Workspace, type WithDatabase } from './scope.ts';

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
const Meta = Type.Object({ limit: Type.Integer(), nextCursor: TextOrNull });

/** @param rowsOf selects the rows of a workspace from one table */
export function v3List<Table extends keyof Tables, Item extends TSchema>(
  app: FastifyInstance,
  context: WithDatabase,
  url: string,
  item: Item,
  rowsOf: (
    workspaceId: string,
  ) => SelectQueryBuilder<
    Tables,
    Table,
    Static<Item> & { readonly id: string; readonly createdAt: Timestamp }
  >,
): void {
  app.get<{ Querystring: Static<typeof Query> }>(
    url,
    {
      schema: {
        querystring: Query,
        response: { 200: Type.Object({ data: Type.Array(item), meta: Meta }) },
      },
    },
    async (request) => {
      const { limit = LIMIT_DEFAULT, workspaceId } = request.query;
      const cursor = readCursor(request.query.cursor, SORTED_BY);
      const { id } = await v3Workspace(context, request, workspaceId, 'read');
      const matching = cursor === null ? rowsOf(id) : rowsOf(id).where(isAfter(cursor, 'asc'));
      const found = await matching
        .orderBy(sql.ref(SORTED_BY))
        .orderBy(sql.ref('id'))
        .limit(limit + 1)
        .execute();
      const { rows, nextCursor } = pageOf(found, limit, SORTED_BY, ({ createdAt }) => createdAt);
      return { data: rows, meta: { limit, nextCursor } };
    },
  );
}
