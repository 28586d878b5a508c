/** The model that the soak compares the gateway with: which limits count a request, and how far a count may be off. */
import { EDGE_TABLE, type EdgeRow, examplePath } from '#test/support/edge-table.ts';

/** A request that fits one row of the table. */
export interface LimitedRoute extends EdgeRow {
  readonly method: string;
  readonly example: string;
  /** The paths of all rows that count this request. */
  readonly charged: readonly string[];
}

export const ROUTES: readonly LimitedRoute[] = EDGE_TABLE.map((row) => {
  const method = row.methods[0] ?? 'GET';
  const example = examplePath(row);
  const charged = EDGE_TABLE.filter((other) => covers(other, method, example)).map(({ path }) => path);
  return { ...row, method, example, charged };
});

/** Knows only the patterns of this table: literal segments, a parameter, and everything below a path. */
function covers({ methods, path }: EdgeRow, method: string, example: string): boolean {
  const source = path.replace('/*', '(?:/.*)?').replaceAll(/\{[a-zA-Z]+\}/g, '[^/]+');
  return methods.includes(method) && new RegExp(`^${source}$`).test(example);
}

/**
 * The decisions of the gateway in one minute. It decides without Redis when the soak disturbs Redis, and on a busy machine also
 * when a reply comes too late.
 */
export interface Minute {
  readonly workers: number;
  /** Requests that were decided without Redis. */
  readonly degraded: number;
}

/**
 * A request that is decided without Redis may be denied too early: another process still had a share, or Redis had charged
 * the request before its reply came too late.
 *
 * @param early denials before the limit was reached
 * @returns how many of them have no such explanation
 */
export function unexplainedDenials(early: number, { degraded }: Pick<Minute, 'degraded'>): number {
  return Math.max(0, early - degraded);
}

/**
 * A process that decides without Redis and has not seen a counter before cannot know what was spent of it, so it admits its
 * share again (docs/operating.md). A single process knows everything.
 *
 * @returns the most that may be admitted: the limit, and the shares of all processes but one
 */
export function admittedMax(limit: number, { workers, degraded }: Minute): number {
  return degraded === 0 ? limit : 2 * limit - Math.floor(limit / workers);
}
