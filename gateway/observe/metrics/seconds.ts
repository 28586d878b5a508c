/**
 * The requests of each second, for the chart of the page. A request belongs to the second in which it arrived, as in
 * the access log, however long its decision or its reply takes. Whoever shows the seconds takes them out of the
 * process, so only the newest ones are in its memory.
 */
import type { Millis } from '#shared/clock.ts';
import { bucketOf, DURATION_BOUNDS_SECONDS } from './histogram.ts';

/** The counts of a policy in a second, in this order. */
export const POLICY_COUNTS = ['allowed', 'denied', 'shadowDenied', 'degraded', 'marked'] as const;
export type PolicyCount = (typeof POLICY_COUNTS)[number];

/** One number for each bound of durations, and one for longer ones. */
export const TIME_BUCKETS = DURATION_BOUNDS_SECONDS.length + 1;

/** Plain data that can be sent to another process. */
export interface Second {
  /** Seconds since the epoch. */
  readonly at: number;
  /** Requests by outcome. */
  readonly requests: Readonly<Record<string, number>>;
  /** Replies of the application by the class of their status, see Metrics.replied. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly policies: readonly (readonly [policy: string, counts: readonly number[]])[];
  readonly decisionTime: readonly number[];
  readonly storeTime: readonly number[];
}

/** If nobody takes them, this many seconds are kept. A thousand policies in each of them take some megabytes. */
const SECONDS_MAX = 60;

class OpenSecond {
  readonly at: number;
  readonly requests: Record<string, number> = {};
  readonly statuses: Record<string, number> = {};
  readonly policies = new Map<string, number[]>();
  readonly decisionTime = newTimes();
  readonly storeTime = newTimes();

  constructor(at: number) {
    this.at = at;
  }
}

export class Seconds {
  readonly #open = new Map<number, OpenSecond>();
  #last = new OpenSecond(-1);

  count(kind: 'requests' | 'statuses', name: string, at: Millis): void {
    const counts = this.#of(at)[kind];
    counts[name] = (counts[name] ?? 0) + 1;
  }

  countPolicy(policy: string, count: PolicyCount, at: Millis): void {
    const { policies } = this.#of(at);
    let counts = policies.get(policy);
    if (counts === undefined) {
      counts = POLICY_COUNTS.map(() => 0);
      policies.set(policy, counts);
    }
    const i = POLICY_COUNTS.indexOf(count);
    counts[i] = (counts[i] ?? 0) + 1;
  }

  observe(kind: 'decisionTime' | 'storeTime', ms: Millis, at: Millis): void {
    const times = this.#of(at)[kind];
    const i = bucketOf(ms);
    times[i] = (times[i] ?? 0) + 1;
  }

  /** Takes out all seconds that are over. Later replies may add more to a second, which the next call then returns. */
  take(now: Millis): Second[] {
    const taken: Second[] = [];
    for (const [at, { policies, ...counts }] of this.#open) {
      if (at >= Math.floor(now / 1000)) continue;
      this.#open.delete(at);
      taken.push({ ...counts, policies: [...policies] });
    }
    if (!this.#open.has(this.#last.at)) this.#last = new OpenSecond(-1);
    return taken;
  }

  #of(time: Millis): OpenSecond {
    const at = Math.floor(time / 1000);
    if (this.#last.at === at) return this.#last;
    let second = this.#open.get(at);
    if (second === undefined) {
      second = new OpenSecond(at);
      this.#open.set(at, second);
      if (this.#open.size > SECONDS_MAX) this.#open.delete(Math.min(...this.#open.keys()));
    }
    this.#last = second;
    return second;
  }
}

function newTimes(): number[] {
  return Array.from({ length: TIME_BUCKETS }, () => 0);
}
