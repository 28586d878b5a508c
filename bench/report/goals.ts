/** The figures to reach, each as a ratio within the same rounds of the same run. */
import type { ScenarioResult } from '../runner.ts';
import type { PeerName } from '../scenarios.ts';
import { pairedRatio, type Spread, spread } from '../statistics.ts';
import { type Measure, valuesOf } from './summary.ts';

interface Goal {
  readonly text: string;
  readonly scenario: string;
  readonly measure: Measure;
  readonly peer: PeerName;
  readonly atMost: number;
  /** Both are measured above this one. */
  readonly added?: PeerName;
}

/** Within the spread: missed by the median, reached in at least a quarter of the rounds. */
export type Verdict = 'reached' | 'within the spread' | 'missed' | 'not measured';

export interface GoalResult {
  readonly text: string;
  readonly atMost: number;
  /** NaN when the peer was not measured. */
  readonly measured: Spread;
  readonly verdict: Verdict;
}

const LUA: PeerName = 'nginx-lua';

const GOALS: readonly Goal[] = [
  {
    text: 'hot key, with Redis, of Lua with its Redis',
    scenario: 'hot',
    measure: 'totalCpuUs',
    peer: LUA,
    atMost: 0.95,
  },
  { text: 'hot key, process alone, of Lua', scenario: 'hot', measure: 'cpuUs', peer: LUA, atMost: 1.3 },
  {
    text: 'hot key, of http-proxy + rlf',
    scenario: 'hot',
    measure: 'cpuUs',
    peer: 'fastify-rlf',
    atMost: 0.3,
  },
  {
    text: 'hot key, of @fastify/rate-limit',
    scenario: 'hot',
    measure: 'cpuUs',
    peer: 'fastify-rate-limit',
    atMost: 0.3,
  },
  { text: 'hot key, of Express', scenario: 'hot', measure: 'cpuUs', peer: 'express', atMost: 0.22 },
  {
    text: 'limiting, of the same without policies',
    scenario: 'hot',
    measure: 'cpuUs',
    peer: 'floodgate-bare',
    atMost: 1.1,
  },
  {
    text: 'Redis per check, hot key, of Lua',
    scenario: 'hot',
    measure: 'redisCpuUs',
    peer: LUA,
    atMost: 0.2,
  },
  {
    text: '20,000 keys, with Redis, of Lua with its Redis',
    scenario: 'keys-20k',
    measure: 'totalCpuUs',
    peer: LUA,
    atMost: 1.15,
  },
  {
    text: 'Redis per check, 20,000 keys, of Lua',
    scenario: 'keys-20k',
    measure: 'redisCpuUs',
    peer: LUA,
    atMost: 0.4,
  },
  {
    text: 'denied, of Lua with its Redis',
    scenario: 'denied',
    measure: 'totalCpuUs',
    peer: LUA,
    atMost: 0.4,
  },
  {
    text: 'denied, of NGINX limit_req',
    scenario: 'denied',
    measure: 'cpuUs',
    peer: 'nginx-limit-req',
    atMost: 1.7,
  },
  { text: 'POST 1 KB, of Lua', scenario: 'post-1k', measure: 'cpuUs', peer: LUA, atMost: 1.35 },
  { text: 'POST 1 MB, of Lua', scenario: 'post-1m', measure: 'cpuUs', peer: LUA, atMost: 0.8 },
  {
    text: 'added latency p50 at 1,000 requests/s, of what Lua adds',
    scenario: 'latency',
    measure: 'p50Ms',
    peer: LUA,
    added: 'direct',
    atMost: 1.5,
  },
];

const RSS_REST_MB = 90;
const RSS_LOADED_MB = 160;

export function judge(results: readonly ScenarioResult[]): GoalResult[] {
  const judged = GOALS.flatMap((goal) => {
    const result = results.find(({ scenario }) => scenario.name === goal.scenario);
    if (result === undefined) return [];
    const values = (name: PeerName): number[] => {
      const target = result.targets.find((one) => one.name === name);
      return target === undefined ? [] : valuesOf(target, goal.measure);
    };
    const floor = goal.added === undefined ? [] : values(goal.added);
    const above = (list: number[]): number[] => list.map((value, i) => value - (floor[i] ?? 0));
    const measured = pairedRatio(above(values('floodgate')), above(values(goal.peer)));
    return [judgement(goal.text, goal.atMost, measured)];
  });
  const hot = results.find(({ scenario }) => scenario.name === 'hot');
  const ours = hot?.targets.find(({ name }) => name === 'floodgate');
  if (ours !== undefined) {
    judged.push(
      judgement('RSS at rest, MB', RSS_REST_MB, spread([ours.restRssMb])),
      judgement('RSS loaded, MB', RSS_LOADED_MB, spread(valuesOf(ours, 'rssMb'))),
    );
  }
  return judged;
}

function judgement(text: string, atMost: number, measured: Spread): GoalResult {
  return { text, atMost, measured, verdict: verdictOf(measured, atMost) };
}

function verdictOf({ median, p25 }: Spread, atMost: number): Verdict {
  if (!Number.isFinite(median)) return 'not measured';
  if (median <= atMost) return 'reached';
  return p25 <= atMost ? 'within the spread' : 'missed';
}
