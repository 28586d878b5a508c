/**
 * Pages of lists that older clients read without paging: a caller who asks for none gets the first page, which is as
 * large as a reply may be, and continues with `skip`. When there is more, the reply says where in a `Link` header
 * (RFC 8288), which those who do not know it do not trip over.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { LIST_PAGE_BYTES_MAX } from '#api/content-limits.ts';
import { type ApiError, badRequest } from '#api/errors.ts';
import { Work } from './turn.ts';

/** How far into a list a page may reach: every row before it is an index entry to pass. */
const SKIP_MAX = 1_000_000;

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
  /** Rows of a page; a larger limit is cut to it, not refused. */
  readonly limitMax: number;
  /** What applies when the caller gives no limit; by default the largest. */
  readonly limitDefault?: number;
  /** The query's name for the number of rows to pass over. */
  readonly skipName?: string;
}

/** Rows read at once where none is large. */
const CHUNK_ROWS_FIRST = 25;
const CHUNK_ROWS_MAX = 250;
/** The same of rows of any size, of which nothing else is done while they are parsed. */
const PORTION_ROWS_MAX = 50;
const PORTION_BYTES = 1_048_576;

/** A row of a list, before any of it is read. */
export interface SizedRow {
  readonly id: string;
  /** Of what is large in it, as it is stored. */
  readonly bytes: number;
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * Reads one page of rows of which none is large. Whoever names no limit gets as many rows as fit; whoever names one counts
 * on it, so a page that does not fit is refused.
 *
 * @param list in a stated order, with ties broken
 * @throws ApiError bad_request when the rows that were asked for are too large for one reply
 */
export async function readPage<Row extends { readonly id: string }>(
  exchange: Exchange,
  query: ListQuery,
  options: PageOptions,
  list: (page: ListPage) => Promise<readonly Row[]>,
): Promise<Row[]> {
  return fill(exchange, query, options, async function* ({ limit, skip }) {
    let chunk = CHUNK_ROWS_FIRST;
    for (let passed = 0; passed < limit; passed += chunk, chunk = CHUNK_ROWS_MAX) {
      const rows = await list({ limit: Math.min(chunk, limit - passed), skip: skip + passed });
      yield rows;
      if (rows.length < chunk) return;
    }
  });
}

/**
 * The same for rows of any size, in portions, so that they take bounded memory and nobody waits for long.
 *
 * @param find in a stated order, with ties broken
 * @param read finds rows by their ids, in any order; who is gone meanwhile is left out
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

/** @returns the rows in the order of `found`, some at a time */
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
  const rows = new Map<string, Row>();
  let bytes = 0;
  let hasMore = false;
  const work = await Work.begin();
  // One row more than is wanted tells whether there is a next page.
  reading: for await (const portion of read({ limit: limit + 1, skip })) {
    for (const row of portion) {
      if (rows.has(row.id)) continue;
      const size = rows.size === limit ? 0 : Buffer.byteLength(JSON.stringify(row));
      const isTooLarge = rows.size > 0 && bytes + size > LIST_PAGE_BYTES_MAX;
      if (isTooLarge && query.limit !== undefined) throw pageTooLarge(rows.size);
      hasMore = isTooLarge || rows.size === limit;
      if (hasMore) break reading;
      bytes += size;
      rows.set(row.id, row);
      await work.done(size);
    }
  }
  if (hasMore) reply.header('link', nextLink(request.url, { limit, skip: skip + rows.size, skipName }));
  await work.done(bytes);
  return [...rows.values()];
}

/** @param fitting rows that would have fitted */
export function pageTooLarge(fitting: number): ApiError {
  return badRequest(
    `This page has more than ${LIST_PAGE_BYTES_MAX} bytes; ask for at most ${fitting} rows with limit`,
    {
      limit: `must not be more than ${fitting} here`,
    },
  );
}

/** Relative, so that it holds behind any proxy. */
function nextLink(
  target: string,
  { limit, skip, skipName }: ListPage & { readonly skipName: string },
): string {
  const url = new URL(target, 'http://localhost');
  url.searchParams.set('limit', String(limit));
  url.searchParams.set(skipName, String(skip));
  return `<${url.pathname}${url.search}>; rel="next"`;
}
