/** The goals of the abuse bench, and whether a result reaches them. */
import { rounded, type Table } from '#bench/run/report.ts';
import { attackOf } from './attacks.ts';
import type { AbuseResult } from './run.ts';

const RSS_MB_MAX = 180;
const P99_TIMES_MAX = 2;
/** A p99 below this value is always good, because twice half a millisecond is noise. */
const P99_FLOOR_MS = 10;
/** Number of keys that the visitor and the gateway itself may add, such as heartbeats. */
const OTHER_KEYS = 30;

export const GOALS_TEXT = [
  `Reached: no request of the visitor fails; its p99 is at most ${P99_TIMES_MAX} times that without an attack, or below ${P99_FLOOR_MS} ms;`,
  `a process has at most ${RSS_MB_MAX} MB; and the attack's own goals.`,
].join('\n');

/** @returns by name of each missed goal, the value and the goal */
export function missed(name: string, result: AbuseResult): Readonly<Record<string, string>> {
  const { attacked, alone, admitted, windows, newcomersServed } = result;
  const { goals = {} } = attackOf(name);
  const found: Record<string, string> = {};
  const miss = (goal: string, isReached: boolean, value: number, of: number, digits = 0): void => {
    if (!isReached) found[goal] = `${rounded(value, digits)} of ${rounded(of, digits)}`;
  };
  const atMost = (goal: string, value: number, max: number, digits = 0): void =>
    miss(goal, value <= max, value, max, digits);
  if (result.died) found.lives = 'the gateway ended';
  miss('success', attacked.success === 1, attacked.success * attacked.sent, attacked.sent);
  atMost('p99', attacked.p99Ms, Math.max(P99_FLOOR_MS, P99_TIMES_MAX * alone.p99Ms), 1);
  atMost('RSS', result.rssPeakMb, RSS_MB_MAX);
  if (goals.keysPerAdmitted !== undefined)
    atMost('Redis keys', result.redisKeys, goals.keysPerAdmitted * admitted + OTHER_KEYS);
  if (goals.admitted !== undefined) atMost('admitted', admitted, goals.admitted * windows);
  if (goals.smuggled !== undefined) atMost('smuggled', result.smuggled, goals.smuggled);
  const { bans = result.bans, newcomersServed: servedMin = 0 } = goals;
  miss('bans', result.bans === bans, result.bans, bans);
  miss('newcomers', newcomersServed >= servedMin, newcomersServed, servedMin, 2);
  return found;
}

export function tableOf(name: string, result: AbuseResult): Table {
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
  const goals = Object.entries(missed(name, result)).map(([goal, text]) => `${goal} ${text}`);
  return {
    title: `${name}: ${attackOf(name).title}`,
    head: [...Object.keys(figures), 'verdict'],
    rows: [[...Object.values(figures), goals.length === 0 ? 'reached' : `missed: ${goals.join(', ')}`]],
    notes: Object.entries(attacked.failures).map(([reason, count]) => `${count} × ${reason}`),
  };
}
