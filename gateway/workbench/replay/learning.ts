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

  /** @param to when the log ends @param hasDigests whether the log has digests of addresses only */
  notes(to: Millis, hasDigests: boolean): string[] {
    const notes: string[] = [];
    if (hasDigests && (regularsIn(this.#set)?.never ?? null) !== null)
      notes.push('networks under regulars.never are ignored, because the log has only digests');
    if (this.#actsFrom === null) return notes;
    const when = isoTime(this.#actsFrom);
    notes.push(
      to < this.#actsFrom
        ? `policies with newcomers would act from ${when}, after the end of the log; until then nobody can be a regular, and they only count`
        : `policies with newcomers act from ${when}; before, nobody can be a regular, and they only count`,
    );
    return notes;
  }
}
