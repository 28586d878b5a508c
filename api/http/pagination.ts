/**
 * Pages of lists that older clients read without paging. Without a limit, a caller gets the first page, as large as a
 * reply may be, and continues with `skip`. If there is more, a `Link` header (RFC 8288) names the next page; clients
 * that do not know it can ignore it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type ApiError, badRequest } from '#api/errors.ts';
import { LIST_PAGE_BYTES_MAX } from '#api/values/content-limits.ts';
import { Work } from './turn.ts';

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
  /** The maximum number of rows that `readPage` reads at once. Default: 250, for small rows. */
  readonly chunkMax?: number;
}

/** The number of small rows that are read at once. */
const CHUNK_ROWS_FIRST = 25;
const CHUNK_ROWS_MAX = 250;
/** The number of rows of any size that are read at once. Parsing them blocks the event loop. */
const PORTION_ROWS_MAX = 50;
const PORTION_BYTES = 1_048_576;

/** A row of a list before it is read. */
export interface SizedRow {
  readonly id: string;
  /** The stored size of its large columns. */
  readonly bytes: number;
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
export async function readPage<Row extends { readonly id: string }>(
  exchange: Exchange,
  query: ListQuery,
  options: PageOptions,
  list: (page: ListPage) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const { chunkMax = CHUNK_ROWS_MAX } = options;
  return fill(exchange, query, options, async function* ({ limit, skip }) {
    let chunk = Math.min(CHUNK_ROWS_FIRST, chunkMax);
    for (let passed = 0; passed < limit; passed += chunk, chunk = chunkMax) {
      const rows = await list({ limit: Math.min(chunk, limit - passed), skip: skip + passed });
      yield rows;
      if (rows.length < chunk) return;
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
export async function readLargePage<Row extends { readonly id: string }>(
  exchange: Exchange,
  query: ListQuery,
  options: PageOptions,
  find: (page: ListPage) => Promise<readonly SizedRow[]>,
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): Promise<Row[]> {
  return fill(exchange, query, options, async function* (page) {
    yield* readPortions(await find(page), read);
  });
}

/** @returns the rows in the order of `found`, in portions */
export async function* readPortions<Row extends { readonly id: string }>(
  found: readonly SizedRow[],
  read: (ids: readonly string[]) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let ids: string[] = [];
  let bytes = 0;
  for (const [index, row] of found.entries()) {
    ids.push(row.id);
    bytes += row.bytes;
    const next = found[index + 1];
    const hasRoom = ids.length < PORTION_ROWS_MAX && bytes + (next?.bytes ?? 0) <= PORTION_BYTES;
    if (next !== undefined && hasRoom) continue;
    const byId = new Map((await read(ids)).map((one) => [one.id, one]));
    yield ids.flatMap((id) => byId.get(id) ?? []);
    ids = [];
    bytes = 0;
  }
}

async function fill<Row extends { readonly id: string }>(
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
export async function collect<Row extends { readonly id: string }>(
  portions: AsyncIterable<readonly Row[]>,
  limit: number,
): Promise<{ readonly rows: Row[]; readonly hasMore: boolean; readonly isTooLarge: boolean }> {
  const rows = new Map<string, Row>();
  let bytes = 0;
  const work = await Work.begin();
  for await (const portion of portions) {
    for (const row of portion) {
      if (rows.has(row.id)) continue;
      const size = rows.size === limit ? 0 : Buffer.byteLength(JSON.stringify(row));
      const isTooLarge = rows.size > 0 && bytes + size > LIST_PAGE_BYTES_MAX;
      if (isTooLarge || rows.size === limit) {
        await work.done(bytes);
        return { rows: [...rows.values()], hasMore: true, isTooLarge };
      }
      bytes += size;
      rows.set(row.id, row);
      await work.done(size);
    }
  }
  await work.done(bytes);
  return { rows: [...rows.values()], hasMore: false, isTooLarge: false };
}

export function pageTooLarge(fitting: number): ApiError {
  return badRequest(
    `This page has more than ${LIST_PAGE_BYTES_MAX} bytes; ask for at most ${fitting} rows with limit`,
    {
      limit: `must not be more than ${fitting} here`,
    },
  );
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
