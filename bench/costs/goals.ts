/** Compares the figures with the goals in docs/performance.md. Each goal is a ratio within the same rounds. */
import type { Slice } from '#bench/run/measure.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { pairedRatio, type Spread, spread } from '#bench/run/statistics.ts';
import type { Measured } from './measure.ts';

type Goal = readonly [text: string, scenario: string, measure: keyof Slice, peer: string, atMost: number];

const GOALS: readonly Goal[] = [
  ['hot key, with Redis, compared with Lua and its Redis', 'hot', 'totalCpuUs', 'nginx-lua', 0.9],
  ['hot key, process alone, compared with Lua', 'hot', 'cpuUs', 'nginx-lua', 1.15],
  ['hot key, compared with http-proxy + rlf', 'hot', 'cpuUs', 'fastify-rlf', 0.3],
  ['hot key, compared with @fastify/rate-limit', 'hot', 'cpuUs', 'fastify-rate-limit', 0.3],
  ['hot key, compared with Express', 'hot', 'cpuUs', 'express', 0.3],
  ['limiting, compared with the gateway without policies', 'hot', 'cpuUs', 'floodgate-bare', 1.15],
  ['Redis per check, hot key, compared with Lua', 'hot', 'storeCpuUs', 'nginx-lua', 0.2],
  ['20,000 keys, with Redis, compared with Lua and its Redis', 'keys-20k', 'totalCpuUs', 'nginx-lua', 1],
  ['100,000 keys, with Redis, compared with Lua and its Redis', 'keys-100k', 'totalCpuUs', 'nginx-lua', 1.15],
  ['Redis per check, 100,000 keys, compared with Lua', 'keys-100k', 'storeCpuUs', 'nginx-lua', 0.6],
  ['denied, compared with Lua and its Redis', 'denied', 'totalCpuUs', 'nginx-lua', 0.3],
  ['denied, compared with NGINX limit_req', 'denied', 'cpuUs', 'nginx-limit-req', 1.6],
  ['POST 1 KB, compared with Lua', 'post-1k', 'cpuUs', 'nginx-lua', 1.1],
  ['POST 1 MB, compared with Lua', 'post-1m', 'cpuUs', 'nginx-lua', 0.85],
  ['added latency p50 at 1,000 requests/s, compared with Lua', 'latency', 'p50Ms', 'nginx-lua', 1.5],
];
const RSS_REST_MB = 110;
const RSS_LOADED_MB = 160;

/** @param results by scenario @returns null when no goal was measured */
export function goalTable(results: ReadonlyMap<string, Measured>): Table | null {
  const rows = GOALS.flatMap(([text, scenario, measure, peer, atMost]) => {
    const slices = results.get(scenario)?.slices;
    if (slices === undefined) return [];
    const values = (name: string): number[] => (slices.get(name) ?? []).map((slice) => slice[measure]);
    const floor = scenario === 'latency' ? values('direct') : [];
    const above = (name: string): number[] => values(name).map((value, i) => value - (floor[i] ?? 0));
    const ratio = pairedRatio(above('floodgate'), above(peer));
    return Number.isFinite(ratio.median) ? [rowOf(text, atMost, ratio)] : [];
  });
  const hot = results.get('hot');
  if (hot !== undefined) {
    const loaded = (hot.slices.get('floodgate') ?? []).map(({ rssMb }) => rssMb);
    rows.push(rowOf('RSS when idle, MB', RSS_REST_MB, spread([hot.restRssMb])));
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

/** Within the spread: the median misses the goal, but at least a quarter of the rounds reach it. */
function verdictOf(p25: number, median: number, atMost: number): string {
  if (median <= atMost) return 'reached';
  return p25 <= atMost ? 'within the spread' : 'missed';
}
