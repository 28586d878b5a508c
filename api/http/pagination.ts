/**
 * Pages of lists that older clients read without paging. Without a limit, a caller gets the first page, as large as a
 * reply may be, and continues with `skip`. If there is more, a `Link` header (RFC 8288) names the next page; clients
 * that do not know it can ignore it.
 */
import { setImmediate as otherRequests } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type ApiError, badRequest } from '#api/errors.ts';
import { LIST_PAGE_BYTES_MAX } from '#api/values/content-limits.ts';

/** How far into a list a page may reach, because every row before it is an index entry to read. */
export const SKIP_MAX = 1_000_000;

export const ListQuery = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  skip: Type.Optional(Type.Integer({ minimum: 0, maximum: SKIP_MAX })),
});
export type ListQuery = Static<typeof ListQuery>;

export interface ListPage {
  readonly limit: number;
  readonly skip: number;
}

interface PageOptions {
  /** The maximum number of rows in a page. A larger limit is reduced to it. */
  readonly limitMax: number;
  /** The limit if the caller gives none. Default: the maximum. */
  readonly limitDefault?: number;
  readonly skipName?: string;
  /** The number of rows that `readPage` reads at once. Default: 250, for small rows. */
  readonly atOnce?: number;
}

const SMALL_ROWS_AT_ONCE = 250;
/** They are in memory together, and parsing them blocks the event loop. */
export const LARGE_ROWS_AT_ONCE = 25;

interface WithId {
  readonly id: string;
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * Reads one page of small rows. If the caller names no limit, the page has as many rows as fit. If the caller names one
 * and the rows do not fit, the page is refused.
 *
 * @param list must have a total order
 * @throws ApiError bad_request if the rows are too large for one reply
 */
export async function readPage<Row extends WithId>(
  exchange: Exchange,
  query: ListQuery,
  options: PageOptions,
  list: (page: ListPage) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const { atOnce = SMALL_ROWS_AT_ONCE } = options;
  return fill(exchange, query, options, async function* ({ limit, skip }) {
    for (let passed = 0; passed < limit; passed += atOnce) {
      const rows = await list({ limit: Math.min(atOnce, limit - passed), skip: skip + passed });
      yield rows;
      if (rows.length < atOnce) return;
    }
  });
}

/**
 * Reads one page of rows of any size. It reads them in portions, which limits the memory and the time that other
 * requests wait.
 *
 * @param find must have a total order
 * @param read finds rows by their ids, in any order, and returns them as the reply shows them, because that is what is
 *   measured; deleted ones are left out
 */
export async function readLargePage<Row extends WithId>(
  exchange: Exchange,
  query: ListQuery,
  options: PageOptions,
  find: (page: ListPage) => Promise<readonly WithId[]>,
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<Row[]> {
  return fill(exchange, query, options, async function* (page) {
    yield* readPortions(await find(page), LARGE_ROWS_AT_ONCE, read);
  });
}

/** @returns the rows in the order of `found`, in portions */
export async function* readPortions<Row extends WithId>(
  found: readonly WithId[],
  atOnce: number,
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let at = 0; at < found.length; at += atOnce) {
    const ids = found.slice(at, at + atOnce).map(({ id }) => id);
    const byId = new Map((await read(ids)).map((row) => [row.id, row]));
    yield ids.flatMap((id) => byId.get(id) ?? []);
  }
}

async function fill<Row extends WithId>(
  { request, reply }: Exchange,
  query: ListQuery,
  { limitMax, limitDefault = limitMax, skipName = 'skip' }: PageOptions,
  read: (page: ListPage) => AsyncIterable<readonly Row[]>,
): Promise<Row[]> {
  const limit = Math.min(query.limit ?? limitDefault, limitMax);
  const { skip = 0 } = query;
  // One more row tells whether there is a next page.
  const { rows, hasMore, isTooLarge } = await collect(read({ limit: limit + 1, skip }), limit);
  if (isTooLarge && query.limit !== undefined) throw pageTooLarge(rows.length);
  if (hasMore) reply.header('link', nextLink(request.url, { limit, skip: skip + rows.length, skipName }));
  return rows;
}

/** Collects the rows of a page, each once, until it has `limit` of them or is too large for a reply. */
export async function collect<Row extends WithId>(
  portions: AsyncIterable<readonly Row[]>,
  limit: number,
): Promise<{ readonly rows: Row[]; readonly hasMore: boolean; readonly isTooLarge: boolean }> {
  const rows = new Map<string, Row>();
  let bytes = 0;
  for await (const portion of portions) {
    for (const row of portion) {
      if (rows.has(row.id)) continue;
      bytes += rows.size === limit ? 0 : Buffer.byteLength(JSON.stringify(row));
      const isTooLarge = rows.size > 0 && bytes > LIST_PAGE_BYTES_MAX;
      if (isTooLarge || rows.size === limit) return { rows: [...rows.values()], hasMore: true, isTooLarge };
      rows.set(row.id, row);
    }
    await otherRequests();
  }
  return { rows: [...rows.values()], hasMore: false, isTooLarge: false };
}

export function pageTooLarge(fitting: number): ApiError {
  const message = `This page has more than ${LIST_PAGE_BYTES_MAX} bytes; ask for at most ${fitting} rows with limit`;
  return badRequest(message, { limit: `must not be more than ${fitting} here` });
}

/** Returns a relative link to the next page, which works behind any proxy. */
function nextLink(
  target: string,
  { limit, skip, skipName }: ListPage & { readonly skipName: string },
): string {
  const url = new URL(target, 'http://localhost');
  url.searchParams.set('limit', String(limit));
  url.searchParams.set(skipName, String(skip));
  return `<${url.pathname}${url.search}>; rel="next"`;
}
