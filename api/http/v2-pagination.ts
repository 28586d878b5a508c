/** Query parameters, metadata and pages of v2 lists. */
import { type SelectQueryBuilder, sql } from 'kysely';
import { type Static, Type } from 'typebox';
import { countRows } from '#api/db/count.ts';
import type { Tables, Timestamp } from '#api/db/schema.ts';
import { OneOf } from '#api/values/schemas.ts';
import { collect, LARGE_ROWS_AT_ONCE, pageTooLarge, readPortions, SKIP_MAX } from './pagination.ts';
import { timestampIn } from './validation.ts';

const timeFields = ['createdAt', 'updatedAt'] as const;

export const listQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 250 })),
  skip: Type.Optional(Type.Integer({ minimum: 0, maximum: SKIP_MAX })),
  sortBy: Type.Optional(OneOf(timeFields)),
  order: Type.Optional(OneOf(['asc', 'desc'] as const)),
  startDate: Type.Optional(Type.String()),
  endDate: Type.Optional(Type.String()),
  filterDateField: Type.Optional(OneOf(timeFields)),
};
const ListQuery = Type.Object(listQuery);

export const ListMeta = Type.Object({
  total: Type.Integer(),
  limit: Type.Integer(),
  offset: Type.Integer(),
});

interface FoundPage<Row> {
  readonly data: Row[];
  readonly meta: Static<typeof ListMeta>;
}

/**
 * Reads one page of the matching rows, in the order that the query specifies, ties by id. Rows that are skipped are read
 * from an index only.
 *
 * @param matching rows of one table that has `id`, `createdAt` and `updatedAt`
 * @param read finds rows by their ids, in any order; deleted ones are left out
 * @throws ApiError invalid_fields for a wrong date, bad_request if the rows are too large for one reply
 */
export async function readV2Page<Table extends keyof Tables, Row extends { readonly id: string }>(
  query: Static<typeof ListQuery>,
  matching: SelectQueryBuilder<Tables, Table, unknown>,
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<FoundPage<Row>> {
  const { limit = 50, skip = 0, sortBy = 'createdAt', order = 'desc' } = query;
  const inRange = withinDates(matching, query);
  const found = await inRange
    .clearSelect()
    .select(sql.ref<string>('id').as('id'))
    .orderBy(sql.ref(sortBy), order)
    .orderBy(sql.ref('id'), order)
    .limit(limit)
    .offset(skip)
    .execute();
  // Counting takes longer the more rows match. A page that is not full ends the list, and an empty one may lie behind it.
  const isEnd = found.length < limit && (found.length > 0 || skip === 0);
  const total = isEnd ? skip + found.length : await countRows(inRange);
  const { rows: data, isTooLarge } = await collect(readPortions(found, LARGE_ROWS_AT_ONCE, read), limit);
  if (isTooLarge) throw pageTooLarge(data.length);
  return { data, meta: { total, limit, offset: skip } };
}

/** Narrows a query to the rows between the dates of the page. */
function withinDates<Table extends keyof Tables, Row>(
  matching: SelectQueryBuilder<Tables, Table, Row>,
  { filterDateField = 'createdAt', ...dates }: Static<typeof ListQuery>,
): SelectQueryBuilder<Tables, Table, Row> {
  const field = sql.ref<Timestamp>(filterDateField);
  const startDate = timestampIn('startDate', dates.startDate);
  const endDate = timestampIn('endDate', dates.endDate);
  let inRange = matching;
  if (startDate !== null) inRange = inRange.where(sql<boolean>`${field} >= ${startDate}`);
  if (endDate !== null) inRange = inRange.where(sql<boolean>`${field} <= ${endDate}`);
  return inRange;
}
