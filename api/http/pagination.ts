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

export interface PageOptions {
  /** Rows of a page; a larger limit is cut to it, not refused. */
  readonly limitMax: number;
  /** What applies when the caller gives no limit; by default the largest. */
  readonly limitDefault?: number;
  /** The query's name for the number of rows to pass over. */
  readonly skipName?: string;
}

/** Rows read at once: the largest have a megabyte, and nothing else happens while they are parsed. */
export const CHUNK_ROWS = 10;

/**
 * Reads one page, in chunks, so that rows of any size take bounded memory. Whoever names no limit gets as many rows as
 * fit; whoever names one counts on it, so a page that does not fit is refused.
 *
 * @param list in a stated order, with ties broken
 * @throws ApiError bad_request when the rows that were asked for are too large for one reply
 */
export async function readPage<Row extends { readonly id: string }>(
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  query: ListQuery,
  { limitMax, limitDefault = limitMax, skipName = 'skip' }: PageOptions,
  list: (page: ListPage) => Promise<readonly Row[]>,
): Promise<Row[]> {
  const limit = Math.min(query.limit ?? limitDefault, limitMax);
  const { skip = 0 } = query;
  const rows = new Map<string, Row>();
  let passed = 0;
  let bytes = 0;
  let hasMore = false;
  const work = await Work.begin();
  while (!hasMore) {
    // One row more than is wanted tells whether there is a next page.
    const wanted = Math.min(CHUNK_ROWS, limit - rows.size + 1);
    const found = await list({ limit: wanted, skip: skip + passed });
    passed += found.length;
    for (const row of found) {
      if (rows.has(row.id)) continue;
      const size = rows.size === limit ? 0 : Buffer.byteLength(JSON.stringify(row));
      const isTooLarge = rows.size > 0 && bytes + size > LIST_PAGE_BYTES_MAX;
      if (isTooLarge && query.limit !== undefined) throw pageTooLarge(rows.size);
      hasMore = isTooLarge || rows.size === limit;
      if (hasMore) break;
      bytes += size;
      rows.set(row.id, row);
      await work.done(size);
    }
    if (found.length < wanted) break;
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
