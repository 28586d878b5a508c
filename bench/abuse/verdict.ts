/** The goals of the abuse bench, and whether a result reaches them. */
import { rounded, type Table } from '#bench/run/report.ts';
import type { AbuseScenario } from './scenario.ts';
import type { AbuseResult } from './visit.ts';

const RSS_MB_MAX = 180;
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

function atMost(name: string, value: number, max: number, digits = 0): Goal {
  return { name, isReached: value <= max, text: `${rounded(value, digits)} of ${rounded(max, digits)}` };
}

export function memoryGoal(rssMb: number): Goal {
  return atMost('RSS', rssMb, RSS_MB_MAX);
}

export function judge(scenario: AbuseScenario, result: AbuseResult): readonly Goal[] {
  const { attacked, alone, admitted, redisKeys, smuggled, bans, minutes, died, rssPeakMb } = result;
  const { countsKeys, admittedPerMinuteMax, bans: bansMeant, smuggles } = scenario;
  const p99Max = Math.max(P99_FLOOR_MS, P99_TIMES_MAX * alone.p99Ms);
  const success = `${rounded(attacked.success * 100, 1)} % of ${attacked.sent}`;
  const goals = [
    { name: 'lives', isReached: !died, text: died ? 'the gateway ended' : 'yes' },
    { name: 'success', isReached: attacked.success === 1, text: success },
    atMost('p99', attacked.p99Ms, p99Max, 1),
    memoryGoal(rssPeakMb),
  ];
  if (countsKeys) goals.push(atMost('Redis keys', redisKeys, KEYS_PER_ADMITTED_MAX * admitted + OTHER_KEYS));
  if (admittedPerMinuteMax !== undefined)
    goals.push(atMost('admitted', admitted, admittedPerMinuteMax * minutes));
  if (bansMeant !== undefined)
    goals.push({ name: 'bans', isReached: bans === bansMeant, text: `${bans} of ${bansMeant}` });
  if (smuggles) goals.push(atMost('smuggled', smuggled, 0));
  return goals;
}

type Judged = Table & { readonly isReached: boolean };

export function tableOf(scenario: AbuseScenario, result: AbuseResult): Judged {
  const { attacked, alone, attack, directP99Ms, rssPeakMb, redisKeys, admitted } = result;
  const figures = {
    visitor: `${rounded(attacked.success * 100, 1)} %`,
    'p50 ms': rounded(attacked.p50Ms, 1),
    'p99 ms': rounded(attacked.p99Ms, 1),
    'alone p99': rounded(alone.p99Ms, 1),
    'direct p99': rounded(directP99Ms, 1),
    'RSS MB': rounded(rssPeakMb, 0),
    keys: rounded(redisKeys, 0),
    admitted: rounded(admitted, 0),
    attack: `${attack.requests} on ${attack.connected}`,
  };
  const notes = Object.entries(attacked.failures).map(([reason, count]) => `${count} × ${reason}`);
  return judgedTable(scenario, figures, judge(scenario, result), notes);
}

export function judgedTable(
  { name, title }: Pick<AbuseScenario, 'name' | 'title'>,
  figures: Readonly<Record<string, string>>,
  goals: readonly Goal[],
  notes: readonly string[] = [],
): Judged {
  const missed = goals.filter(({ isReached }) => !isReached);
  const verdict = missed.map((goal) => `${goal.name} ${goal.text}`).join(', ');
  return {
    isReached: missed.length === 0,
    title: `${name}: ${title}`,
    head: [...Object.keys(figures), 'verdict'],
    rows: [[...Object.values(figures), verdict === '' ? 'reached' : `missed: ${verdict}`]],
    notes,
  };
}
