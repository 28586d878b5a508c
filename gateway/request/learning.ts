/** Knows whether enough days of history exist for policies with `newcomers`, and tells when that changes. */

import { regularsIn, whileLearning } from '#gateway/policy/learning.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { isoTime, type Millis } from '#shared/clock.ts';

interface LearningOptions {
  /** Reads the clock by which days begin. */
  readonly now: () => Millis;
  /** Called when the policies have to be applied again. */
  readonly onChange: () => void;
  readonly log: { info(fields: object, message: string): void };
}

export class Learning {
  readonly #options: LearningOptions;
  /** When the histories began; null if it is unknown, or no policy needs them. */
  #began: { readonly name: string; readonly at: Millis } | null = null;
  #told = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LearningOptions) {
    this.#options = options;
  }

  /** @returns when the histories of this name began; null if it is unknown */
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
    const applied = whileLearning(set, this.#began?.at ?? null, now);
    const regulars = regularsIn(applied);
    clearTimeout(this.#timer);
    // A store ends histories that nobody uses, so ask again when a file uses them.
    if (regulars === null) this.#began = null;
    if (regulars === null || this.#began === null) return applied;
    if (applied === set) {
      this.#tell('', 'policies with newcomers act', {});
      return set;
    }
    const { actsFrom } = regulars;
    if (typeof actsFrom !== 'number') return applied;
    this.#timer = setTimeout(this.#options.onChange, Math.max(1, actsFrom - now));
    this.#timer.unref();
    const fields = { actsFrom: isoTime(actsFrom) };
    this.#tell(
      fields.actsFrom,
      'policies with newcomers deny nobody yet, because nobody can be a regular',
      fields,
    );
    return applied;
  }

  /** Tells each change once. @param what empty if the policies act, which is told only if they did not before */
  #tell(what: string, message: string, fields: object): void {
    if (what === this.#told) return;
    this.#told = what;
    this.#options.log.info(fields, message);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
