/**
 * Policies whose charge depends on the reply: those that count only failures or successes, and those whose cost is in a
 * header of the reply, or is the length of its body. A request is charged when it is admitted, before its outcome is
 * known. When its reply begins, unused units are given back and further units are charged; for the length of the body,
 * when its reply ends. So requests in flight are never charged more than the
 * limit in total, however many there are. If the client leaves before the reply, or gets none from the application, the
 * request counts both as a failure and as a success, and costs the reported units or the whole reserve. If only a part of
 * the header section could be read, and it has no report, the request costs the most that a reply can report. Otherwise
 * leaving early, or provoking replies that come too late or cannot be read, would make every request cheap.
 */
import { type Policy, settledAt } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';
import type { Adjustment } from './check.ts';
import type { Limiter, Outcome, Spent } from './limiter.ts';
import { reportedUnits } from './units.ts';

/**
 * How an admitted request ended: the status of the upstream's reply; `unknown` if the client left, or the gateway itself
 * replied, after the request had reached the upstream; null if it never did.
 */
export type Ending = number | 'unknown' | null;

function counts({ count }: Policy, ending: Ending): boolean {
  switch (count) {
    case 'request':
      return ending !== null;
    case 'failure':
      return ending === 'unknown' || (typeof ending === 'number' && ending >= 400);
    case 'success':
      return ending === 'unknown' || (typeof ending === 'number' && ending < 400);
    default:
      return count satisfies never;
  }
}

/** Maximum cost of a reply, in limits, so that a mistake of the application does not lock out a client for longer. */
const LIMITS_PER_REPLY_MAX = 10;

/** What is known when a reply begins, and when it ends. */
export type Moment =
  | {
      readonly at: 'begin';
      /** Headers of the reply, alternating names and values; null if no reply has begun. */
      readonly headers: readonly string[] | null;
      /** Whether these are all headers of the reply. */
      readonly isWhole: boolean;
    }
  | {
      readonly at: 'end';
      /** Bytes of the body that were sent to the client; null if unknown. */
      readonly sentBytes: number | null;
    };

/**
 * Returns the outcomes for the buckets that are settled at this moment.
 *
 * @param position of the request in its batch
 */
export function outcomesOf(
  { buckets, states }: Spent,
  position: number,
  ending: Ending,
  moment: Moment,
): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [i, bucket] of buckets.entries()) {
    const { policy, cost } = bucket;
    const state = states[i] ?? null;
    // A policy that never denies counts up to its limit.
    if (settledAt(policy) !== moment.at || state === null || position >= state.roomFor(cost)) continue;
    const { at: chargedAt } = state.state;
    const final = counts(policy, ending) ? finalUnits(bucket, moment) : NOTHING;
    outcomes.push({ bucket, chargedAt, ...final });
  }
  return outcomes;
}

const NOTHING = { units: 0, lacksUnits: false } as const;

function finalUnits(
  { policy, cost, capacity, limit }: Bucket,
  moment: Moment,
): Pick<Outcome, 'units' | 'lacksUnits'> {
  const most = Math.max(limit, capacity) * LIMITS_PER_REPLY_MAX;
  if (moment.at === 'end') return { units: Math.min(moment.sentBytes ?? cost, most), lacksUnits: false };
  const { headers, isWhole } = moment;
  const isReported = policy.cost.kind === 'reply-header' && headers !== null;
  const reported = isReported ? reportedUnits(policy.cost.header, headers) : cost;
  return { units: Math.min(reported ?? (isWhole ? cost : most), most), lacksUnits: reported === null };
}

/**
 * Returns the change of a counter that settles a charge. Returned units belong to the window of the charge, because
 * they must not enlarge a later window. Further units are charged now, because otherwise a request near a window's end
 * would be cheaper.
 *
 * @param now on the store's clock
 */
export function settlement({ bucket, chargedAt, units }: Outcome, now: Millis): Adjustment {
  const beyond = units - bucket.cost;
  return { bucket, amount: bucket.amountOf(beyond), chargedAt: beyond > 0 ? now : chargedAt };
}

/** Returns what the store has to change. @param isLocal the request was decided without it, so nothing is charged yet */
export function changesFor(outcome: Outcome, isLocal: boolean, now: Millis): readonly Adjustment[] {
  const change = settlement(outcome, now);
  if (!isLocal) return [change];
  const { bucket, chargedAt, units } = outcome;
  const charge = { bucket, amount: bucket.amountOf(Math.min(units, bucket.cost)), chargedAt };
  return change.amount > 0 ? [charge, change] : [charge];
}

/**
 * The charge of an admitted request until its outcome is known, and its leases while it is in flight. Call `conclude`
 * when its reply begins or will not come, and `close` when it has ended. Further calls do nothing.
 */
export class Reservation {
  readonly #limiter: Limiter;
  readonly #position: number;
  /** The charge of the request. null once all of it is settled. */
  #spent: Spent | null;
  /** How the request ended; undefined until that is known. */
  #ending: Ending | undefined = undefined;
  /** The lease of the request. null if none is held. */
  #held: Spent | null;
  readonly #onSettled: (outcomes: readonly Outcome[]) => void;
  /** Whether a header of the reply reports the cost of the request. */
  readonly awaitsReply: boolean;

  /** @param position of the request in its batch */
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

  /** Whether the request holds a place in flight. */
  get isHeld(): boolean {
    return this.#held !== null;
  }

  /**
   * @param headers of the reply, alternating names and values; null if no reply has begun
   * @param isWhole whether these are all headers of the reply
   */
  conclude(ending: Ending, headers: readonly string[] | null = null, isWhole = true): void {
    if (this.#ending !== undefined) return;
    this.#ending = ending;
    this.#settle(ending, { at: 'begin', headers, isWhole });
  }

  /** Called when the request is over, for any reason. @param sentBytes bytes of the reply's body that the client was sent */
  close(sentBytes = 0): void {
    this.conclude(null);
    this.#settle(this.#ending ?? null, { at: 'end', sentBytes });
    this.#spent = null;
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    this.#limiter.release(held, this.#position);
  }

  #settle(ending: Ending, moment: Moment): void {
    const spent = this.#spent;
    if (spent === null) return;
    const outcomes = outcomesOf(spent, this.#position, ending, moment);
    if (outcomes.length === 0) return;
    this.#limiter.conclude(outcomes, spent.isLocal);
    this.#onSettled(outcomes);
  }
}
