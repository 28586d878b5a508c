/**
 * The policies that operators have put in shadow mode, as this process knows them. Policies are identified by bucket,
 * because policies that share a bucket must have the same mode. Requests do not read this list: each change makes a new
 * policy table.
 */
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Clock, Millis } from '#shared/clock.ts';

export const SHADOWS_MAX = 1000;
export const SHADOW_DAYS_MAX = 7;
export const SHADOW_MS_MAX: Millis = SHADOW_DAYS_MAX * 86_400_000;

interface ShadowsOptions {
  readonly clock: Clock;
  /** Called when the set of buckets in shadow mode has changed. */
  readonly onChange: () => void;
}

export class Shadows {
  readonly #options: ShadowsOptions;
  /** End of each shadow mode by bucket, on the clock of this process. */
  #endsAt = new Map<string, Millis>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ShadowsOptions) {
    this.#options = options;
  }

  get endsAt(): ReadonlyMap<string, Millis> {
    return this.#endsAt;
  }

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

/** Returns the policies, with those of the given buckets in shadow mode, and the shares of their limits. */
export function shadowed(set: PolicySet, buckets: ReadonlyMap<string, unknown>): PolicySet {
  const isShadowed = ({ bucket, shareOf }: Policy): boolean =>
    buckets.has(bucket) || (shareOf !== null && buckets.has(shareOf));
  if (!set.policies.some((policy) => policy.mode !== 'shadow' && isShadowed(policy))) return set;
  return {
    ...set,
    policies: set.policies.map((policy) => (isShadowed(policy) ? { ...policy, mode: 'shadow' } : policy)),
  };
}
