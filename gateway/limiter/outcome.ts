/**
 * Policies whose charge the reply settles: those that count failures, or successes, only, and those whose cost a header of
 * the reply reports. A request is charged when it is admitted, as nobody knows yet what will come of it. What it does not
 * take is given back when its reply begins, and what it takes beyond is charged then. So never more than the limit is
 * charged for requests on their way, however many there are at once. A client that does not wait for the reply has its
 * request counted as a failure and as a success, and pays what the reply reports, or the whole reserve. Otherwise leaving
 * early would make every request cheap.
 */
import { isSettledByReply, type Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { Adjustment } from './check.ts';
import type { Limiter, Outcome, Spent } from './limiter.ts';

/**
 * How an admitted request ended: the status of the upstream's reply; `left`, the client left a request that had reached
 * the upstream; `unanswered`, the gateway answered a request that had reached the upstream; null, it never reached it.
 */
export type Ending = number | 'left' | 'unanswered' | null;

function counts({ count }: Policy, ending: Ending): boolean {
  switch (count) {
    case 'request':
      return ending !== null;
    case 'failure':
      return ending === 'left' || (typeof ending === 'number' && ending >= 400);
    case 'success':
      return ending === 'left' || (typeof ending === 'number' && ending < 400);
    default:
      return count satisfies never;
  }
}

/** A mistake of the application must not lock out a client for longer: a reply takes at most so many limits. */
const LIMITS_PER_REPLY_MAX = 10;
const WHOLE_NUMBER = /^[\t ]*[0-9]{1,15}[\t ]*$/;

/**
 * The units that a reply reports.
 *
 * @param headers names and values in turn
 * @returns null: the header is missing, is there several times, or is no whole number
 */
function reportedUnits(header: string, headers: readonly string[]): number | null {
  let reported: string | null = null;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (name.length !== header.length || name.toLowerCase() !== header) continue;
    if (reported !== null) return null;
    reported = headers[i + 1] ?? '';
  }
  return reported !== null && WHOLE_NUMBER.test(reported) ? Number(reported) : null;
}

/**
 * For the buckets that the reply settles.
 *
 * @param position of the request among those who asked together
 * @param headers of the reply, names and values in turn; null: none has begun
 */
export function outcomesOf(
  { buckets, states }: Spent,
  position: number,
  ending: Ending,
  headers: readonly string[] | null,
): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [i, bucket] of buckets.entries()) {
    const { policy, cost, capacity, limit } = bucket;
    const state = states[i] ?? null;
    // A shadow policy counts up to its limit.
    if (!isSettledByReply(policy) || state === null || position >= state.roomFor(cost)) continue;
    const { at: chargedAt } = state.state;
    if (!counts(policy, ending)) outcomes.push({ bucket, chargedAt, units: 0, lacksUnits: false });
    else {
      const isReported = policy.cost.kind === 'reply-header' && headers !== null;
      const reported = isReported ? reportedUnits(policy.cost.header, headers) : cost;
      const units = Math.min(reported ?? cost, Math.max(limit, capacity) * LIMITS_PER_REPLY_MAX);
      outcomes.push({ bucket, chargedAt, units, lacksUnits: reported === null });
    }
  }
  return outcomes;
}

/**
 * The change of a counter that settles a charge. What is given back belongs to the window of the charge: it must not
 * enlarge a later one. What was used beyond is charged now: a client must not get it free by asking near a window's end.
 *
 * @param now on the store's clock
 */
export function settlement({ bucket, chargedAt, units }: Outcome, now: Millis): Adjustment {
  const beyond = units - bucket.cost;
  return { bucket, amount: bucket.amountOf(beyond), chargedAt: beyond > 0 ? now : chargedAt };
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
  readonly #onSettled: (outcomes: readonly Outcome[]) => void;
  /** A header of its reply reports what it costs. */
  readonly awaitsReply: boolean;

  /** @param position of the request among those who asked together */
  constructor(
    limiter: Limiter,
    spent: Spent,
    position: number,
    onSettled: (outcomes: readonly Outcome[]) => void,
  ) {
    this.#limiter = limiter;
    this.#onSettled = onSettled;
    this.awaitsReply = spent.buckets.some(({ policy }) => policy.cost.kind === 'reply-header');
    this.#spent = spent;
    this.#held = spent.leases === null ? null : spent;
    this.#position = position;
  }

  /** It has a place in flight. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** @param headers of the reply, names and values in turn; null: none has begun */
  conclude(ending: Ending, headers: readonly string[] | null = null): void {
    const spent = this.#spent;
    if (spent === null) return;
    this.#spent = null;
    const outcomes = outcomesOf(spent, this.#position, ending, headers);
    this.#limiter.conclude(outcomes, spent.isLocal);
    this.#onSettled(outcomes);
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
