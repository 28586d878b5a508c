/** The goals of the abuse bench, and whether a result reaches them. */
import { rounded, type Table } from '#bench/run/report.ts';
import type { AbuseScenario } from './scenario.ts';
import type { AbuseResult } from './visit.ts';

export const RSS_MB_MAX = 180;
const P99_TIMES_MAX = 2;
/** A p99 below this value is always good, because twice half a millisecond is noise. */
const P99_FLOOR_MS = 10;
const KEYS_PER_ADMITTED_MAX = 2;
/** Number of keys that the visitor and the gateway itself may add, such as heartbeats. */
const OTHER_KEYS = 30;

export const GOALS_TEXT = [
  `Reached: no request of the visitor fails; its p99 is at most ${P99_TIMES_MAX} times that without an attack, or below ${P99_FLOOR_MS} ms;`,
  `a process has at most ${RSS_MB_MAX} MB; and the scenario's own goals.`,
].join('\n');

export interface Goal {
  readonly name: string;
  readonly isReached: boolean;
  readonly text: string;
}

export function judge(scenario: AbuseScenario, result: AbuseResult): readonly Goal[] {
  const { attacked, alone, admitted, redisKeys, smuggled, bans, minutes, died, rssPeakMb } = result;
  const { countsKeys, admittedPerMinuteMax, bans: bansMeant, smuggles } = scenario;
  const atMost = (name: string, value: number, max: number, digits = 0): Goal => ({
    name,
    isReached: value <= max,
    text: `${rounded(value, digits)} of ${rounded(max, digits)}`,
  });
  const p99Max = Math.max(P99_FLOOR_MS, P99_TIMES_MAX * alone.p99Ms);
  const success = `${rounded(attacked.success * 100, 1)} % of ${attacked.sent}`;
  return [
    { name: 'lives', isReached: died === null, text: died ?? 'yes' },
    { name: 'success', isReached: attacked.success === 1, text: success },
    atMost('p99', attacked.p99Ms, p99Max, 1),
    atMost('RSS', rssPeakMb, RSS_MB_MAX),
    ...(countsKeys === true
      ? [atMost('Redis keys', redisKeys, KEYS_PER_ADMITTED_MAX * admitted + OTHER_KEYS)]
      : []),
    ...(admittedPerMinuteMax !== undefined
      ? [atMost('admitted', admitted, admittedPerMinuteMax * minutes)]
      : []),
    ...(bansMeant !== undefined
      ? [{ name: 'bans', isReached: bans === bansMeant, text: `${bans} of ${bansMeant}` }]
      : []),
    ...(smuggles === true ? [atMost('smuggled', smuggled, 0)] : []),
  ];
}

const HEAD = [
  ...['', 'visitor', 'p50 ms', 'p99 ms', 'alone p99', 'direct p99'],
  ...['RSS MB', 'keys', 'admitted', 'attack', 'verdict'],
];

export function tableOf(scenario: AbuseScenario, result: AbuseResult): Table {
  const { attacked, alone, attack } = result;
  const missed = judge(scenario, result).filter(({ isReached }) => !isReached);
  const verdict = missed.map(({ name, text }) => `${name} ${text}`).join(', ');
  const row = [
    ...['', `${rounded(attacked.success * 100, 1)} %`, rounded(attacked.p50Ms, 1)],
    ...[attacked.p99Ms, alone.p99Ms, result.directP99Ms].map((ms) => rounded(ms, 1)),
    ...[rounded(result.rssPeakMb, 0), rounded(result.redisKeys, 0), rounded(result.admitted, 0)],
    ...[`${attack.requests} on ${attack.connected}`, verdict === '' ? 'reached' : `missed: ${verdict}`],
  ];
  const notes = Object.entries(attacked.failures).map(([reason, count]) => `${count} × ${reason}`);
  return { title: `${scenario.name}: ${scenario.title}`, head: HEAD, rows: [row], notes };
}
