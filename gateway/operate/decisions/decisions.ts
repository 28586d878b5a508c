/**
 * Gives every refusal an id, and records refusals for operators.
 *
 * Records are written in batches, and no request waits for that. During a flood only a sample is recorded: the first
 * few refusals of each batch, and the first one of each identity in its window. A bound for each identity keeps it from
 * pushing out the others. If the store is away, a bounded number of records is kept and written later.
 */
import { DecisionIds } from '#gateway/reply/decision-ids.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { DecisionRecord, DecisionStore } from './decision-record.ts';
import type { Refusal } from './refusal.ts';

const BATCH_MS: Millis = 100;
const AGAIN_MS: Millis = 1000;
/** Number of refusals in each batch that are always recorded. */
const KEPT_ANYWAY = 20;
/** The largest batch. Beyond KEPT_ANYWAY, only the first refusal of each identity and window is recorded. */
const BATCH_MAX = 120;
/** Maximum number of records of one identity in a minute, in addition to the first ones of windows. */
const REPEATS_MAX = 60;
const REPEATS_MS: Millis = 60_000;
const PENDING_MAX = 1000;
/** Maximum number of pairs of counter and identity whose recorded window is remembered. */
const SEEN_MAX = 16_384;
const PATH_MAX = 200;

/** The parts of a refused request that its record needs. */
export interface RefusedRequest {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  readonly addressFrom: string;
  readonly file: string;
  readonly policyVersion: string;
}

/** Describes a refused request. Called only if the refusal is recorded. */
export interface Refused {
  describe(): RefusedRequest;
}

interface DecisionsOptions {
  readonly store: DecisionStore;
  /** Whether decisions are made in the store, not in this process. */
  readonly isStoreUsed: () => boolean;
  readonly wallClock: Clock;
  /** Random bytes for ids, at least 8. */
  readonly random: Uint8Array;
  readonly replica: string;
}

export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #ids: DecisionIds;
  #pending: DecisionRecord[] = [];
  /** Number of records since the last batch. */
  #kept = 0;
  #timer: NodeJS.Timeout | undefined;
  /** End of the window in which a refusal was recorded, by counter and digest. */
  readonly #seen = new Map<string, Map<string, Millis>>();
  #seenSize = 0;
  /** Number of repeated refusals that were recorded in this minute, by digest. */
  readonly #repeats = new Map<string, number>();
  #repeatsUntil: Millis = 0;
  /** Number of refusals that were not recorded, because there were too many. */
  unrecorded = 0;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#ids = new DecisionIds(options.random);
  }

  /** @returns the id */
  add(refusal: Refusal, refused: Refused): string {
    const id = this.#ids.next();
    const now = this.#options.wallClock();
    const isFirst = this.#isFirst(refusal, now);
    if (this.#kept >= (isFirst ? BATCH_MAX : KEPT_ANYWAY) || (!isFirst && !this.#mayRepeat(refusal, now))) {
      this.unrecorded++;
      return id;
    }
    this.#kept++;
    this.#pending.push(this.#record(id, refusal, refused.describe(), now));
    if (this.#pending.length > PENDING_MAX) {
      this.#pending.shift();
      this.unrecorded++;
    }
    this.#timer ??= this.#later(BATCH_MS);
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

  /** Makes one attempt to write the remaining records. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#pending.length > 0) await this.#options.store.write(this.#pending).catch(() => undefined);
    this.#options.store.close();
  }

  #mayRepeat({ identity }: Refusal, now: Millis): boolean {
    if (now >= this.#repeatsUntil || this.#repeats.size >= SEEN_MAX) {
      this.#repeats.clear();
      this.#repeatsUntil = now + REPEATS_MS;
    }
    const kept = this.#repeats.get(identity) ?? 0;
    if (kept >= REPEATS_MAX) return false;
    this.#repeats.set(identity, kept + 1);
    return true;
  }

  #isFirst({ counter, identity, resetMs }: Refusal, now: Millis): boolean {
    let seen = this.#seen.get(counter);
    if (seen === undefined) {
      seen = new Map();
      this.#seen.set(counter, seen);
    }
    const until = seen.get(identity);
    if (until !== undefined && until > now) return false;
    if (until === undefined && ++this.#seenSize > SEEN_MAX) {
      this.#seen.clear();
      this.#seenSize = 1;
      seen = new Map();
      this.#seen.set(counter, seen);
    }
    seen.set(identity, now + resetMs);
    return true;
  }

  #record(id: string, refusal: Refusal, request: RefusedRequest, now: Millis): DecisionRecord {
    const { decision, policy, line, violated, limit, used, cost, windowSeconds, algorithm } = refusal;
    const { resetMs, identity, identifier, isUnproven, isLocal, fromMemory } = refusal;
    const { method, target, addressFrom, file, policyVersion } = request;
    const [path = ''] = target.split('?', 1);
    return {
      id,
      at: new Date(now).toISOString(),
      decision,
      method,
      path: path.slice(0, PATH_MAX),
      policy,
      line,
      file,
      policyVersion,
      violated,
      limit,
      used,
      cost,
      windowSeconds,
      algorithm,
      endsAt: new Date(now + resetMs).toISOString(),
      identity,
      identifier,
      isUnproven,
      addressFrom,
      decidedBy: isLocal || !this.#options.isStoreUsed() ? 'local' : 'store',
      fromMemory,
      replica: this.#options.replica,
    };
  }

  #later(ms: Millis): NodeJS.Timeout {
    const timer = setTimeout(() => void this.#write(), ms);
    timer.unref();
    return timer;
  }

  async #write(): Promise<void> {
    const batch = this.#pending;
    this.#pending = [];
    this.#kept = 0;
    let delayMs = BATCH_MS;
    try {
      await this.#options.store.write(batch);
    } catch {
      // Ignore the error, because the limiter reports the outage.
      const all = [...batch, ...this.#pending];
      this.unrecorded += Math.max(0, all.length - PENDING_MAX);
      this.#pending = all.slice(-PENDING_MAX);
      delayMs = AGAIN_MS;
    }
    this.#timer = this.#pending.length > 0 ? this.#later(delayMs) : undefined;
  }
}
