/**
 * Policies that count failures, or successes, only. A request is charged when it is admitted, as nobody knows yet what
 * will come of it, and what does not count is given back when its reply begins: so never more than the limit of those
 * that count pass, however many are on their way at once. A client that does not wait for the reply has it counted as
 * a failure and as a success. Otherwise leaving early would make every request free.
 */
import type { Policy } from '#gateway/policy/policy.ts';
import type { Limiter, Outcome, Spent } from './limiter.ts';

/**
 * How an admitted request ended: the status of the upstream's reply; `left`, the client left a request that had reached
 * the upstream; null, it never reached the upstream, or the gateway answered in place of the upstream.
 */
export type Ending = number | 'left' | null;

function counts({ count }: Policy, ending: Ending): boolean {
  switch (count) {
    case 'request':
      return true;
    case 'failure':
      return ending === 'left' || (ending !== null && ending >= 400);
    case 'success':
      return ending === 'left' || (ending !== null && ending < 400);
    default:
      return count satisfies never;
  }
}

/**
 * For the buckets whose policies do not count every request.
 *
 * @param position of the request among those who asked together
 */
export function outcomesOf({ buckets, states }: Spent, position: number, ending: Ending): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [i, bucket] of buckets.entries()) {
    const { policy, cost } = bucket;
    const state = states[i] ?? null;
    // A shadow policy counts up to its limit.
    if (policy.count === 'request' || state === null || position >= state.roomFor(cost)) continue;
    outcomes.push({ bucket, chargedAt: state.state.at, counts: counts(policy, ending) });
  }
  return outcomes;
}

/**
 * Keeps the charge of an admitted request until it is known whether it counts, and its leases as long as it is in flight.
 * Concluded once, by whoever knows first, and closed once, when it is over.
 */
export class Reservation {
  readonly #limiter: Limiter;
  readonly #position: number;
  /** null: concluded. */
  #spent: Spent | null;
  /** null: nothing is held. */
  #held: Spent | null;

  /** @param position of the request among those who asked together */
  constructor(limiter: Limiter, spent: Spent, position: number) {
    this.#limiter = limiter;
    this.#spent = spent;
    this.#held = spent.leases === null ? null : spent;
    this.#position = position;
  }

  /** It has a place in flight. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  conclude(ending: Ending): void {
    const spent = this.#spent;
    if (spent === null) return;
    this.#spent = null;
    this.#limiter.conclude(outcomesOf(spent, this.#position, ending), spent.isLocal);
  }

  /** The request is over, in whatever way. */
  close(): void {
    this.conclude(null);
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    this.#limiter.release(held, this.#position);
  }
}
