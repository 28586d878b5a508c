/** The results that the soak expects: which limits count a request, and how far a count may differ from the limit. */
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

/** Whether a row covers a path. It supports the patterns of this table: literals, parameters, and `/*` at the end. */
function covers({ methods, path }: EdgeRow, method: string, example: string): boolean {
  const source = path.replace('/*', '(?:/.*)?').replaceAll(/\{[a-zA-Z]+\}/g, '[^/]+');
  return methods.includes(method) && new RegExp(`^${source}$`).test(example);
}

/**
 * The decisions of the gateway in one minute. The gateway decides without Redis while the soak disturbs Redis, and on a
 * busy machine also if a reply of Redis comes too late.
 */
export interface Minute {
  readonly workers: number;
  /** Requests that were decided without Redis. */
  readonly degraded: number;
}

/**
 * Counts early denials that cannot be explained. A request that is decided without Redis may be denied too early:
 * another process still had a part of the limit left, or Redis had charged the request but its reply came too late.
 *
 * @param early number of denials before the limit was reached
 */
export function unexplainedDenials(early: number, { degraded }: Pick<Minute, 'degraded'>): number {
  return Math.max(0, early - degraded);
}

/**
 * Returns the maximum number of requests that may be admitted. A process that decides without Redis, and has not seen a
 * counter before, does not know how much of the limit is used. So it admits its share of the limit again
 * (docs/operating.md). A single process knows all counters.
 */
export function admittedMax(limit: number, { workers, degraded }: Minute): number {
  return degraded === 0 ? limit : 2 * limit - Math.floor(limit / workers);
}
