/**
 * Which policies operators keep from denying for a while, as this process knows it. By bucket, because rows that share one
 * have to agree. Nothing is asked of it while requests come: whoever decides takes another table when it changes.
 */
import type { Clock, Millis } from '#shared/clock.ts';

export const SHADOWS_MAX = 1000;
export const SHADOW_DAYS_MAX = 7;
export const SHADOW_MS_MAX: Millis = SHADOW_DAYS_MAX * 86_400_000;

interface ShadowsOptions {
  readonly clock: Clock;
  /** Another set of buckets is in shadow. */
  readonly onChange: () => void;
}

export class Shadows {
  readonly #options: ShadowsOptions;
  /** When each ends, on the clock of this process. */
  #endsAt = new Map<string, Millis>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ShadowsOptions) {
    this.#options = options;
  }

  get endsAt(): ReadonlyMap<string, Millis> {
    return this.#endsAt;
  }

  set(bucket: string, endsAt: Millis): void {
    this.replace(new Map(this.#endsAt).set(bucket, endsAt));
  }

  /** @returns whether it was there */
  delete(bucket: string): boolean {
    const left = new Map(this.#endsAt);
    const was = left.delete(bucket);
    if (was) this.replace(left);
    return was;
  }

  /** Takes what is known of all of them. */
  replace(endsAt: Map<string, Millis>): void {
    const now = this.#options.clock();
    for (const [bucket, end] of endsAt) if (end <= now) endsAt.delete(bucket);
    const before = this.#endsAt;
    this.#endsAt = endsAt;
    clearTimeout(this.#timer);
    if (endsAt.size > 0) {
      const next = Math.min(...endsAt.values());
      this.#timer = setTimeout(() => this.replace(new Map(this.#endsAt)), Math.max(1, next - now));
      this.#timer.unref();
    }
    const isSame = before.size === endsAt.size && [...endsAt.keys()].every((bucket) => before.has(bucket));
    if (!isSame) this.#options.onChange();
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
