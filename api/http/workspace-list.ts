/** What v3 lists of one workspace take and tell, and how their pages are read: the oldest first, ties by id, by cursor. */
import { type SelectQueryBuilder, sql } from 'kysely';
import { type Static, Type } from 'typebox';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { Id } from '#api/schemas.ts';
import { type Cursor, isAfter, pageOf, readCursor } from './cursor-pagination.ts';

const LIMIT_DEFAULT = 50;
const SORTED_BY = 'createdAt';

export const WorkspaceListQuery = Type.Object(
  {
    workspaceId: Id,
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });
export const CursorMeta = Type.Object({ limit: Type.Integer(), nextCursor: TextOrNull });

interface CursorPage {
  readonly limit: number;
  /** null: the first page. */
  readonly cursor: Cursor | null;
}

/** @throws ApiError invalid_fields for a text that is no cursor of such a list */
export function cursorPageFrom({ limit, cursor }: Static<typeof WorkspaceListQuery>): CursorPage {
  return { limit: limit ?? LIMIT_DEFAULT, cursor: readCursor(cursor, SORTED_BY) };
}

/** @param matching rows of one table */
export async function readCursorPage<
  Table extends keyof Database,
  Row extends { readonly id: string; readonly createdAt: Timestamp },
>(
  matching: SelectQueryBuilder<Database, Table, Row>,
  { limit, cursor }: CursorPage,
): Promise<{ data: Row[]; meta: Static<typeof CursorMeta> }> {
  const found: readonly Row[] = await (cursor === null ? matching : matching.where(isAfter(cursor)))
    .orderBy(sql.ref(SORTED_BY))
    .orderBy(sql.ref('id'))
    .limit(limit + 1)
    .execute();
  const { rows, nextCursor } = pageOf(found, limit, SORTED_BY, ({ createdAt }) => createdAt);
  return { data: [...rows], meta: { limit, nextCursor } };
}
