/**
 * Chooses the refusals of a flood that are recorded. Of each client and policy these are the first ten in a minute, and
 * the last one of each second after that. So the newest record is of now, and what each record stands for adds up to
 * the number of refusals.
 */
import type { Millis } from '#shared/clock.ts';

const SECOND_MS: Millis = 1000;
const MINUTE_MS: Millis = 60_000;
/** Number of refusals by one policy in a minute up to which a client has few. */
export const FEW = 10;
/** Maximum number of pairs of client and policy whose refusals are counted. */
const PAIRS_MAX = 16_384;
/** Maximum number of pairs with a refusal that waits for the end of its second. */
const WAITING_MAX = 1000;

/** A client and a policy that refuses it. */
export interface Pair<Refusal> {
  /** Number of refusals in this minute, with the one that was counted last. */
  number: number;
  /** When a refusal beyond the first ones was last taken. */
  takenAt: Millis;
  /** The last refusal, and how many have come since another one was taken. */
  last: Refusal | null;
  refusals: number;
}

export class FloodSample<Refusal> {
  readonly #pairs = new Map<string, Map<string, Pair<Refusal>>>();
  #size = 0;
  #minuteEndsAt: Millis = 0;
  /** Those whose last refusal was not taken yet, the one that waits longest first. */
  readonly #waiting = new Set<Pair<Refusal>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Lets a refusal wait. @returns false if it, or the one that waited before, gets no record */
  add(pair: Pair<Refusal>, refusal: Refusal): boolean {
    const isFirst = pair.last === null;
    if (isFirst && this.#waiting.size >= WAITING_MAX) return false;
    pair.last = refusal;
    pair.refusals++;
    this.#waiting.add(pair);
    return isFirst;
  }

  /** Takes out the last refusals of clients of whom none was taken in this second. */
  take(now: Millis, max: number): { readonly last: Refusal; readonly refusals: number }[] {
    const taken: { last: Refusal; refusals: number }[] = [];
    for (const pair of this.#waiting) {
      if (taken.length >= max) break;
      const { last, refusals, takenAt } = pair;
      // The clock may have been set back.
      if (last === null || (now >= takenAt && now - takenAt < SECOND_MS)) continue;
      this.#waiting.delete(pair);
      Object.assign(pair, { last: null, refusals: 0, takenAt: now });
      taken.push({ last, refusals });
    }
    return taken;
  }

  /** Counts a refusal. */
  count(policy: string, client: string, now: Millis): Pair<Refusal> {
    if (now >= this.#minuteEndsAt || this.#size >= PAIRS_MAX) {
      // Those that wait are still taken.
      this.#pairs.clear();
      this.#size = 0;
      this.#minuteEndsAt = now + MINUTE_MS;
    }
    let ofPolicy = this.#pairs.get(policy);
    if (ofPolicy === undefined) {
      ofPolicy = new Map();
      this.#pairs.set(policy, ofPolicy);
    }
    let pair = ofPolicy.get(client);
    if (pair === undefined) {
      pair = { number: 0, takenAt: Number.NEGATIVE_INFINITY, last: null, refusals: 0 };
      ofPolicy.set(client, pair);
      this.#size++;
    }
    pair.number++;
    return pair;
  }
}
