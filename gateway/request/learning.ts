/** Knows whether enough days of history exist for policies with `newcomers`, and tells when that changes. */

import { DAY_MS, type VisitRule } from '#gateway/policy/groups.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { regularsIn, whileLearning } from '#gateway/policy/regulars.ts';
import { isoTime, type Millis } from '#shared/clock.ts';

/** Returns for how long the store keeps histories that nobody uses. */
export function keptMs({ visits }: VisitRule): Millis {
  return visits * DAY_MS;
}

interface LearningOptions {
  /** Reads the clock by which days begin. */
  readonly now: () => Millis;
  /** Whether the store tells when histories began. Otherwise they begin with the first policy that needs them. */
  readonly hasStore: boolean;
  /** Called when the policies have to be applied again. */
  readonly onChange: () => void;
  readonly log: { info(fields: object, message: string): void };
}

export class Learning {
  readonly #options: LearningOptions;
  /** When the histories began; null if it is unknown, or no policy needs them. */
  #began: { readonly name: string; readonly at: Millis } | null = null;
  /** Since when no policy needs histories; null if one does. */
  #unusedSince: Millis | null = null;
  #told = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LearningOptions) {
    this.#options = options;
  }

  /** @param name empty for histories in this process @returns when they began; null if it is unknown */
  since(name: string): Millis | null {
    return this.#began?.name === name ? this.#began.at : null;
  }

  /** @param at when the histories of this name began */
  hear(name: string, at: Millis): void {
    if (at === this.since(name)) return;
    this.#began = { name, at };
    this.#options.onChange();
  }

  /** Returns the policies, with those for newcomers in shadow mode until they may act. */
  applyTo(set: PolicySet): PolicySet {
    const now = this.#options.now();
    this.#use(regularsIn(set), now);
    const applied = whileLearning(set, this.#began?.at ?? null, now);
    clearTimeout(this.#timer);
    const rule = regularsIn(applied);
    if (this.#began === null || rule === null) return applied;
    const { actsFrom } = rule;
    if (typeof actsFrom === 'number') {
      this.#timer = setTimeout(this.#options.onChange, Math.max(1, actsFrom - now)).unref();
      this.#tell(isoTime(actsFrom));
    } else if (actsFrom === null) this.#tell('');
    return applied;
  }

  /** Histories end if no policy uses them for as long as it takes to become a regular. */
  #use(regulars: VisitRule | null, now: Millis): void {
    if (regulars === null) {
      this.#unusedSince ??= now;
      return;
    }
    if (this.#unusedSince !== null && now - this.#unusedSince >= keptMs(regulars)) this.#began = null;
    this.#unusedSince = null;
    if (!this.#options.hasStore) this.#began ??= { name: '', at: now };
  }

  /** Tells each change once. @param actsFrom empty if the policies act, which is told only if they did not before */
  #tell(actsFrom: string): void {
    if (actsFrom === this.#told) return;
    this.#told = actsFrom;
    const { log } = this.#options;
    if (actsFrom === '') log.info({}, 'policies with newcomers act');
    else log.info({ actsFrom }, 'policies with newcomers deny nobody yet, because nobody can be a regular');
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
