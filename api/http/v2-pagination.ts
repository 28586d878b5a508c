/** Query parameters, metadata and pages of v2 lists. */
import { type SelectQueryBuilder, sql } from 'kysely';
import { type Static, Type } from 'typebox';
import { countRows } from '#api/db/count.ts';
import type { Tables, Timestamp } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import { OneOf } from '#api/values/schemas.ts';
import { collect, LARGE_ROWS_AT_ONCE, pageTooLarge, readPortions, SKIP_MAX } from './pagination.ts';
import { timestampIn } from './validation.ts';

const timeFields = ['createdAt', 'updatedAt'] as const;
type TimeField = (typeof timeFields)[number];

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

interface V2Page {
  readonly limit: number;
  readonly skip: number;
  readonly sortBy: TimeField;
  readonly order: 'asc' | 'desc';
  readonly filterDateField: TimeField;
  readonly startDate: Timestamp | null;
  readonly endDate: Timestamp | null;
}

/** @throws ApiError invalid_fields for a wrong date, or a start after the end */
export function pageFrom(query: Static<typeof ListQuery>): V2Page {
  const startDate = timestampIn('startDate', query.startDate);
  const endDate = timestampIn('endDate', query.endDate);
  if (startDate !== null && endDate !== null && startDate > endDate) {
    throw invalidFields({ startDate: 'must not be after endDate' });
  }
  return {
    limit: query.limit ?? 50,
    skip: query.skip ?? 0,
    sortBy: query.sortBy ?? 'createdAt',
    order: query.order ?? 'desc',
    filterDateField: query.filterDateField ?? 'createdAt',
    startDate,
    endDate,
  };
}

interface FoundPage<Row> {
  readonly data: Row[];
  readonly meta: Static<typeof ListMeta>;
}

/** The rows of a list, before dates narrow them. */
export interface Listed<Table extends keyof Tables> {
  /** Rows of one table that has `id`, `createdAt` and `updatedAt`. */
  readonly matching: SelectQueryBuilder<Tables, Table, unknown>;
  /** Returns the number of matching rows. Absent if it is not kept. */
  readonly countKept?: (() => Promise<number>) | undefined;
}

/**
 * Reads one page of the matching rows, in the order that the page specifies, ties by id. Rows that are skipped are read
 * from an index only.
 *
 * @param read finds rows by their ids, in any order; deleted ones are left out
 * @throws ApiError bad_request if the rows are too large for one reply
 */
export async function readV2Page<Table extends keyof Tables, Row extends { readonly id: string }>(
  { matching, countKept }: Listed<Table>,
  page: V2Page,
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<FoundPage<Row>> {
  const inRange = withinDates(matching, page);
  const found = await inRange
    .clearSelect()
    .select(sql.ref<string>('id').as('id'))
    .orderBy(sql.ref(page.sortBy), page.order)
    .orderBy(sql.ref('id'), page.order)
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  // Counting takes longer the more rows match. A page that is not full ends the list, and an empty one may lie behind it.
  const isEnd = found.length < page.limit && (found.length > 0 || page.skip === 0);
  const count = countKept === undefined || inRange !== matching ? () => countRows(inRange) : countKept;
  const total = isEnd ? page.skip + found.length : await count();
  const portions = readPortions(found, LARGE_ROWS_AT_ONCE, read);
  const { rows: data, isTooLarge } = await collect(portions, page.limit);
  if (isTooLarge) throw pageTooLarge(data.length);
  return { data, meta: { total, limit: page.limit, offset: page.skip } };
}

/** Narrows a query to the rows between the dates of the page. */
function withinDates<Table extends keyof Tables, Row>(
  matching: SelectQueryBuilder<Tables, Table, Row>,
  { filterDateField, startDate, endDate }: V2Page,
): SelectQueryBuilder<Tables, Table, Row> {
  const field = sql.ref<Timestamp>(filterDateField);
  let inRange = matching;
  if (startDate !== null) inRange = inRange.where(sql<boolean>`${field} >= ${startDate}`);
  if (endDate !== null) inRange = inRange.where(sql<boolean>`${field} <= ${endDate}`);
  return inRange;
}
