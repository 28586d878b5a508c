/** What has to hold for the victim, the process and the store, and whether it did. */
import type { AbuseResult } from './runner.ts';
import type { AbuseScenario } from './scenario.ts';

export const RSS_MB_MAX = 180;
export const P99_TIMES_MAX = 2;
/** Below this p99 is not judged: twice half a millisecond is noise. */
export const P99_FLOOR_MS = 10;
export const KEYS_PER_ADMITTED_MAX = 2;
/** Of the victim and the gateway itself: windows that begin anew while the attack lasts, heartbeats. */
const KEYS_OF_OTHERS = 30;

export interface Goal {
  readonly name: string;
  readonly reached: boolean;
  readonly said: string;
}

export function judge(scenario: AbuseScenario, result: AbuseResult): readonly Goal[] {
  const { attacked, undisturbed, admitted, redisKeys, smuggled, minutes } = result;
  const p99Max = Math.max(P99_FLOOR_MS, P99_TIMES_MAX * undisturbed.p99Ms);
  const goals: Goal[] = [
    goal('lives', result.died === null, result.died ?? 'yes'),
    goal('success', attacked.success === 1, `${(attacked.success * 100).toFixed(1)} % of ${attacked.sent}`),
    goal(
      'p99',
      attacked.p99Ms <= p99Max,
      Number.isNaN(attacked.p99Ms)
        ? 'nothing answered'
        : `${attacked.p99Ms.toFixed(1)} ms of ${p99Max.toFixed(1)}`,
    ),
    goal('RSS', result.rssPeakMb <= RSS_MB_MAX, `${result.rssPeakMb.toFixed(0)} MB of ${RSS_MB_MAX}`),
  ];
  if (scenario.countsKeys === true && redisKeys !== null) {
    const max = KEYS_PER_ADMITTED_MAX * admitted + KEYS_OF_OTHERS;
    goals.push(goal('Redis keys', redisKeys <= max, `${redisKeys} of ${max}`));
  }
  if (scenario.admittedPerMinuteMax !== undefined && redisKeys !== null) {
    const max = scenario.admittedPerMinuteMax * minutes;
    goals.push(goal('admitted', admitted <= max, `${admitted} of ${max}`));
  }
  if (scenario.smuggles === true) goals.push(goal('smuggled', smuggled === 0, `${smuggled} of 0`));
  return goals;
}

function goal(name: string, reached: boolean, said: string): Goal {
  return { name, reached, said };
}
