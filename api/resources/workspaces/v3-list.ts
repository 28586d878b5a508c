/**
 * A read-only list on v3: rows of one workspace, the oldest first, ties by id, in pages with a cursor.
 *
 * Callers need the right to read the workspace.
 */
import type { FastifyInstance } from 'fastify';
import { type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import { type Static, type TSchema, Type } from 'typebox';
import type { Tables, Timestamp } from '#api/db/schema.ts';
import { Id, TextOrNull } from '#api/values/schemas.ts';
import { v3Workspace, type WithDatabase } from './scope.ts';

const LIMIT_DEFAULT = 50;
/** The time and the id of the last row of a page. */
const CURSOR_PATTERN = '^\\d{4}-\\d\\d-\\d\\dT[\\d:.]{12}Z_[0-9a-z]{1,64}$';

const Query = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String({ pattern: CURSOR_PATTERN, text: 'is not the nextCursor of a page' })),
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
      const { cursor, limit = LIMIT_DEFAULT, workspaceId } = request.query;
      const { id } = await v3Workspace(context, request, workspaceId, 'read');
      const [time, lastId] = cursor?.split('_') ?? [];
      const isAfter = sql<SqlBool>`("createdAt", "id") > (${time}, ${lastId})`;
      const found = await (cursor === undefined ? rowsOf(id) : rowsOf(id).where(isAfter))
        .orderBy(sql.ref('createdAt'))
        .orderBy(sql.ref('id'))
        .limit(limit + 1)
        .execute();
      const data = found.slice(0, limit);
      const last = found.length > limit ? data.at(-1) : undefined;
      const nextCursor = last === undefined ? null : `${last.createdAt}_${last.id}`;
      return { data, meta: { limit, nextCursor } };
    },
  );
}
