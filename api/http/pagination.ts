/**
 * Pages of lists that older clients read without paging: a caller who asks for none gets the first page, which is as
 * large as a reply may be, and continues with `skip`.
 */
import { type Static, Type } from 'typebox';

/** How far into a list a page may reach: every row before it is an index entry to pass. */
const SKIP_MAX = 1_000_000;

export const ListQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  skip: Type.Optional(Type.Integer({ minimum: 0, maximum: SKIP_MAX })),
});

export interface ListPage {
  readonly limit: number;
  readonly skip: number;
}

/** @param most rows of a page; a larger limit is cut to it, not refused */
export function pageOf(
  { limit = Number.POSITIVE_INFINITY, skip = 0 }: Static<typeof ListQuery>,
  most: number,
): ListPage {
  return { limit: Math.min(limit, most), skip };
}
