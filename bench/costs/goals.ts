/** Compares the results with the goals in docs/performance.md. A goal is a ratio of results from the same rounds. */
import { ratios } from '#bench/run/comparison.ts';
import type { Slice } from '#bench/run/measure.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { type Spread, spread } from '#bench/run/statistics.ts';
import type { Measured } from './measure.ts';

/** `other` is a peer in the same scenario, or another scenario of Floodgate. */
type Goal = readonly [text: string, scenario: string, measure: keyof Slice, other: string, atMost: number];

const GOALS: readonly Goal[] = [
  ['hot key, with Redis, compared with Lua and its Redis', 'hot', 'totalCpuUs', 'nginx-lua', 0.92],
  ['20,000 keys, with Redis, compared with Lua and its Redis', 'keys-20k', 'totalCpuUs', 'nginx-lua', 1.15],
  ['100,000 keys, with Redis, compared with Lua and its Redis', 'keys-100k', 'totalCpuUs', 'nginx-lua', 1.4],
  ['100,000 keys, compared with 300 keys, the process alone', 'keys-100k', 'cpuUs', 'keys-300', 1.25],
  ['1,000,000 keys, compared with 300 keys, the process alone', 'keys-1m', 'cpuUs', 'keys-300', 1.25],
  ['Redis per check, hot key, compared with Lua', 'hot', 'storeCpuUs', 'nginx-lua', 0.2],
  ['Redis per check, 100,000 keys, compared with Lua', 'keys-100k', 'storeCpuUs', 'nginx-lua', 0.6],
  ['denied, compared with Lua and its Redis', 'denied', 'totalCpuUs', 'nginx-lua', 0.32],
  ['denied, compared with NGINX limit_req', 'denied', 'cpuUs', 'nginx-limit-req', 2],
  ['POST 1 KB, with Redis, compared with Lua and its Redis', 'post-1k', 'totalCpuUs', 'nginx-lua', 1.3],
  ['POST 1 MB, with Redis, compared with Lua and its Redis', 'post-1m', 'totalCpuUs', 'nginx-lua', 1.1],
  ['hot key, with Redis, compared with Caddy without a limit', 'hot', 'totalCpuUs', 'caddy-plain', 0.5],
  ['hot key, with Redis, compared with @fastify/http-proxy', 'hot', 'totalCpuUs', 'fastify-rlf', 0.5],
  ['limiting, compared with the gateway without policies', 'hot', 'cpuUs', 'floodgate-bare', 1.15],
  ['added latency p50 at 1,000 requests/s, compared with Lua', 'latency', 'addedMs', 'nginx-lua', 1.5],
];
const RSS_REST_MB = 110;
const RSS_LOADED_MB = 160;

/** @param results results by scenario @returns null if no goal has both of its results */
export function goalTable(results: ReadonlyMap<string, Measured>): Table | null {
  const rows = GOALS.flatMap(([text, scenario, measure, other, atMost]) => {
    const measured = results.get(scenario);
    const theirs = results.get(other)?.get('floodgate') ?? measured?.get(other);
    const ours = measured?.get('floodgate');
    if (ours === undefined || theirs === undefined) return [];
    return [rowOf(text, atMost, spread(ratios(ours.slices, theirs.slices, measure)))];
  });
  const hot = results.get('hot')?.get('floodgate');
  if (hot !== undefined) {
    const loaded = hot.slices.map(({ rssMb }) => rssMb);
    rows.push(rowOf('RSS when idle, MB', RSS_REST_MB, spread([hot.restRssMb ?? Number.NaN])));
    rows.push(rowOf('RSS under load, hot key, MB', RSS_LOADED_MB, spread(loaded)));
  }
  return rows.length === 0
    ? null
    : { title: 'Goals', head: ['', 'goal', 'median', 'p25-p75', 'verdict'], rows };
}

function rowOf(text: string, atMost: number, { p25, median, p75 }: Spread): readonly string[] {
  const range = `${rounded(p25, 2)}-${rounded(p75, 2)}`;
  return [text, `≤ ${atMost}`, rounded(median, 2), range, verdictOf(p25, median, atMost)];
}

/**
 * Returns the verdict on a goal. "Within the spread" means that the median misses it, but at least a quarter of the
 * rounds reach it.
 */
function verdictOf(p25: number, median: number, atMost: number): string {
  if (!Number.isFinite(median)) return 'not measured';
  if (median <= atMost) return 'reached';
  return p25 <= atMost ? 'within the spread' : 'missed';
}
