/**
 * Gives every refusal an id, and records refusals for operators.
 *
 * Records are written in batches, and no request waits for that. During a flood only a sample is recorded: of each client
 * and policy the first ten refusals in a minute, and the last one of each second after that. So clients with few refusals
 * come first, because they are the ones who ask, the newest record is of now, and what the records stand for adds up to
 * the number of refusals. If the store is away, a bounded number of records is kept and written later.
 */
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import { type Clock, isoTime, type Millis } from '#shared/clock.ts';
import { DecisionIds } from './decision-ids.ts';
import type { DecisionRecord, DecisionStore } from './decision-record.ts';
import type { Recorded } from './refusal.ts';

const BATCH_MS: Millis = 100;
const SECOND_MS: Millis = 1000;
const MINUTE_MS: Millis = 60_000;
/** Number of refusals by one policy in a minute up to which a client has few. */
const FEW = 10;
/** Largest batch. */
const BATCH_MAX = 120;
/** Maximum number of records of clients with more than a few refusals in a batch. */
const BATCH_OF_MANY = 20;
const PENDING_MAX = 1000;
/** Maximum number of pairs of client and policy whose refusals are counted. */
const PAIRS_MAX = 16_384;
/** Maximum number of pairs with a refusal that waits for the end of its second. It holds its request. */
const WAITING_MAX = 1000;
const PATH_MAX = 200;

/** Describes a refused request. Called only if the refusal is recorded, up to seconds later. */
export type Describe = () => {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  readonly addressFrom: string;
  readonly file: string;
};

/** A refusal that may get a record. */
interface Candidate {
  readonly id: string;
  readonly refusal: Recorded;
  readonly describe: Describe;
  readonly policyVersion: string;
  readonly now: Millis;
}

/** A client and a policy that refuses it. */
interface Pair {
  /** Number of refusals in this minute. */
  number: number;
  /** When a refusal beyond the first ones was last recorded. */
  takenAt: Millis;
  /** The last refusal that waits, and how many have come since another one was recorded. */
  last: Candidate | null;
  refusals: number;
}

interface DecisionsOptions {
  readonly store: DecisionStore;
  /** Whether decisions are made in the store, not in this process. */
  readonly isStoreUsed: () => boolean;
  readonly wallClock: Clock;
  /** Version of the policy file in use. */
  readonly policyVersion: () => string;
  readonly replica: string;
}

export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #ids: DecisionIds;
  #pending: DecisionRecord[] = [];
  /** Number of records since the last batch. */
  #kept = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #pairs = new Map<string, Pair>();
  #minuteEndsAt: Millis = 0;
  /** Pairs whose last refusal waits, the one that waits longest first. */
  readonly #waiting = new Set<Pair>();
  /** Number of refusals that were not recorded, because there were too many. */
  unrecorded = 0;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#ids = new DecisionIds(`${options.replica} ${options.wallClock()}`);
  }

  /** @returns the id */
  add(refusal: Recorded, describe: Describe): string {
    const now = this.#options.wallClock();
    const policyVersion = this.#options.policyVersion();
    const id = this.#ids.next();
    const pair = this.#pairOf(`${refusal.identity} ${refusal.policy}`, now);
    const candidate = { id, refusal, describe, policyVersion, now };
    pair.number++;
    if (pair.number > FEW) this.#wait(pair, candidate);
    else if (this.#kept < BATCH_MAX) this.#keep(candidate, 1);
    else this.unrecorded++;
    this.#timer ??= setTimeout(this.#write, BATCH_MS).unref();
    return id;
  }

  /** @throws if the store is unavailable */
  async find(id: string): Promise<DecisionRecord | null> {
    return this.#pending.find((record) => record.id === id) ?? this.#options.store.find(id);
  }

  /** Lists records, newest first. Records that are not written yet are missing. @throws if the store is unavailable */
  list(before: string | null, count: number): Promise<readonly DecisionRecord[]> {
    return this.#options.store.list(before, count);
  }

  /** See DecisionStore. */
  exchangeDenied(own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]> {
    return this.#options.store.exchangeDenied(this.#options.replica, own);
  }

  /** Makes one attempt to write the remaining records. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#keepWaiting(Number.POSITIVE_INFINITY, PENDING_MAX);
    if (this.#pending.length > 0) await this.#options.store.write(this.#pending).catch(() => undefined);
    this.#options.store.close();
  }

  #pairOf(key: string, now: Millis): Pair {
    if (now >= this.#minuteEndsAt || this.#pairs.size >= PAIRS_MAX) {
      // Those that wait are still recorded.
      this.#pairs.clear();
      this.#minuteEndsAt = now + MINUTE_MS;
    }
    let pair = this.#pairs.get(key);
    if (pair === undefined) {
      pair = { number: 0, takenAt: Number.NEGATIVE_INFINITY, last: null, refusals: 0 };
      this.#pairs.set(key, pair);
    }
    return pair;
  }

  #wait(pair: Pair, candidate: Candidate): void {
    const hasRoom = this.#waiting.has(pair) || this.#waiting.size < WAITING_MAX;
    // Only one of the refusals that wait gets a record.
    if (pair.last !== null || !hasRoom) this.unrecorded++;
    if (!hasRoom) return;
    pair.last = candidate;
    pair.refusals++;
    this.#waiting.add(pair);
  }

  /** Records the last refusals of clients of whom none was recorded in this second. */
  #keepWaiting(now: Millis, max: number): void {
    let kept = 0;
    for (const pair of this.#waiting) {
      if (kept >= max) return;
      const { last, refusals, takenAt } = pair;
      // The clock may have been set back.
      if (last === null || (now >= takenAt && now - takenAt < SECOND_MS)) continue;
      this.#waiting.delete(pair);
      Object.assign(pair, { last: null, refusals: 0, takenAt: now });
      this.#keep(last, refusals);
      kept++;
    }
  }

  #keep({ id, refusal, describe, policyVersion, now }: Candidate, refusals: number): void {
    const { resetMs, isLocal, ...recorded } = refusal;
    const { target, ...request } = describe();
    const [path = ''] = target.split('?', 1);
    this.#kept++;
    this.#pending.push({
      id,
      at: isoTime(now),
      ...recorded,
      ...request,
      path: path.slice(0, PATH_MAX),
      policyVersion,
      endsAt: isoTime(now + resetMs),
      decidedBy: isLocal || !this.#options.isStoreUsed() ? 'local' : 'store',
      replica: this.#options.replica,
      ...(refusals === 1 ? {} : { refusals }),
    });
    if (this.#pending.length <= PENDING_MAX) return;
    this.#pending.shift();
    this.unrecorded++;
  }

  readonly #write = async (): Promise<void> => {
    this.#keepWaiting(this.#options.wallClock(), Math.min(BATCH_OF_MANY, BATCH_MAX - this.#kept));
    const batch = this.#pending;
    this.#pending = [];
    this.#kept = 0;
    let delayMs = BATCH_MS;
    try {
      if (batch.length > 0) await this.#options.store.write(batch);
    } catch {
      // Ignore the error, because the limiter reports the outage.
      const all = [...batch, ...this.#pending];
      this.unrecorded += Math.max(0, all.length - PENDING_MAX);
      this.#pending = all.slice(-PENDING_MAX);
      delayMs = SECOND_MS;
    }
    const isIdle = this.#pending.length === 0 && this.#waiting.size === 0;
    this.#timer = isIdle ? undefined : setTimeout(this.#write, delayMs).unref();
  };
}
