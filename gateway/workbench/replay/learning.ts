/** In a replay, regulars are known from the log only, as in a gateway that began with it. */

import { DAY_MS } from '#gateway/policy/groups.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { regularsIn, whileLearning } from '#gateway/policy/regulars.ts';
import { isoTime, type Millis } from '#shared/clock.ts';

export class Learning {
  readonly #set: PolicySet;
  /** From when policies for newcomers act. null before the first request, and without such policies. */
  #actsFrom: Millis | null = null;
  #hasEnded = false;

  constructor(set: PolicySet) {
    this.#set = set;
  }

  /** @returns the policies from now on; null if they stay as they are */
  policiesAt(now: Millis): PolicySet | null {
    const rule = regularsIn(this.#set);
    if (rule === null || this.#hasEnded) return null;
    if (this.#actsFrom === null) {
      this.#actsFrom = now + rule.visits * DAY_MS;
      return whileLearning(this.#set, now, now);
    }
    if (now < this.#actsFrom) return null;
    this.#hasEnded = true;
    return this.#set;
  }

  /** Says from when policies for newcomers act. null without such policies. */
  get note(): string | null {
    if (this.#actsFrom === null) return null;
    const end = this.#hasEnded ? '' : ', after the end of the log';
    return `policies with newcomers act from ${isoTime(this.#actsFrom)}${end}; before, nobody can be a regular, and they only count`;
  }
}
