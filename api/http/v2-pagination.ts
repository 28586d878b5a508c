/** What every v2 list takes and tells. */
import { type Static, Type } from 'typebox';
import type { Timestamp } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import { OneOf } from '#api/schemas.ts';
import { readTimestamp } from '#api/timestamps.ts';

/** How far into a list a page may reach; dates narrow it down further. */
const SKIP_MAX = 1_000_000;

const timeFields = ['createdAt', 'updatedAt'] as const;
export type TimeField = (typeof timeFields)[number];

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

export interface ListPage {
  readonly limit: number;
  readonly skip: number;
  readonly sortBy: TimeField;
  readonly order: 'asc' | 'desc';
  readonly filterDateField: TimeField;
  readonly startDate: Timestamp | null;
  readonly endDate: Timestamp | null;
}

/** @throws ApiError invalid_fields for what is no date, or a start after the end */
export function pageFrom(query: Static<typeof ListQuery>): ListPage {
  const startDate = dateAt('startDate', query.startDate);
  const endDate = dateAt('endDate', query.endDate);
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

function dateAt(name: string, text: string | undefined): Timestamp | null {
  if (text === undefined) return null;
  const timestamp = readTimestamp(text);
  if (timestamp === null) throw invalidFields({ [name]: 'must be an ISO 8601 date' });
  return timestamp;
}
