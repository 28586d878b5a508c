/**
 * Gives every refusal an id, and records refusals for operators.
 *
 * Records are written in batches, and no request waits for that. During a flood only a sample is recorded. Clients with
 * few refusals come first, because they are the ones whose operators ask. If the store is away, a bounded number of
 * records is kept and written later.
 */
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { DecisionIds } from './decision-ids.ts';
import type { DecisionRecord, DecisionStore } from './decision-record.ts';
import type { Refusal } from './refusal.ts';

const BATCH_MS: Millis = 100;
const AGAIN_MS: Millis = 1000;
/** Largest batch. */
const BATCH_MAX = 120;
/** Size of a batch beyond which only clients with few refusals are recorded. */
const BATCH_OF_ALL = 20;
/** Number of refusals by one policy in a minute up to which a client has few. */
const FEW = 10;
/** Maximum number of records of one client and policy in a minute. */
const RECORDS_MAX = 60;
const MINUTE_MS: Millis = 60_000;
const PENDING_MAX = 1000;
/** Maximum number of pairs of client and policy whose refusals are counted. */
const PAIRS_MAX = 16_384;
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
  /** Salt of the identities. Ids are encrypted with it. */
  readonly salt: string;
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
  /** Number of refusals in this minute, by policy and digest. */
  readonly #refusals = new Map<string, Map<string, number>>();
  /** Number of pairs in #refusals. */
  #pairs = 0;
  #minuteEndsAt: Millis = 0;
  /** Number of refusals that were not recorded, because there were too many. */
  unrecorded = 0;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#ids = new DecisionIds(options.salt, options.replica);
  }

  useSalt(salt: string): void {
    this.#ids.useSalt(salt);
  }

  /** @returns the id */
  add(refusal: Refusal, refused: Refused): string {
    const now = this.#options.wallClock();
    const id = this.#ids.next(refusal, this.#options.policyVersion(), now);
    const number = this.#count(refusal, now);
    if (number > RECORDS_MAX || this.#kept >= (number <= FEW ? BATCH_MAX : BATCH_OF_ALL)) {
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

  /** See DecisionStore. */
  exchangeDenied(own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]> {
    return this.#options.store.exchangeDenied(this.#options.replica, own);
  }

  /** Makes one attempt to write the remaining records. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#pending.length > 0) await this.#options.store.write(this.#pending).catch(() => undefined);
    this.#options.store.close();
  }

  /** @returns the number of refusals of this client by this policy in this minute */
  #count({ policy, identity }: Refusal, now: Millis): number {
    if (now >= this.#minuteEndsAt || this.#pairs >= PAIRS_MAX) {
      this.#refusals.clear();
      this.#pairs = 0;
      this.#minuteEndsAt = now + MINUTE_MS;
    }
    let ofPolicy = this.#refusals.get(policy);
    if (ofPolicy === undefined) {
      ofPolicy = new Map();
      this.#refusals.set(policy, ofPolicy);
    }
    const number = (ofPolicy.get(identity) ?? 0) + 1;
    if (number === 1) this.#pairs++;
    ofPolicy.set(identity, number);
    return number;
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
