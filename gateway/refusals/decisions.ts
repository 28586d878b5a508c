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
import { FEW, FloodSample } from './flood-sample.ts';
import type { Recorded } from './refusal.ts';

const BATCH_MS: Millis = 100;
const AGAIN_MS: Millis = 1000;
/** Largest batch. */
const BATCH_MAX = 120;
/** Maximum number of records of clients with more than a few refusals in a batch. */
const BATCH_OF_MANY = 20;
const PENDING_MAX = 1000;
const PATH_MAX = 200;

/** The parts of a refused request that its record needs. */
export interface RefusedRequest {
  readonly method: string;
  /** Canonical path and query. */
  readonly target: string;
  readonly addressFrom: string;
  readonly file: string;
}

/** Describes a refused request. Called only if the refusal is recorded, up to seconds later. */
export interface Refused {
  describe(): RefusedRequest;
}

/** A refusal that may get a record. */
interface Candidate {
  readonly id: string;
  readonly refusal: Recorded;
  readonly refused: Refused;
  readonly policyVersion: string;
  readonly now: Millis;
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
  readonly #sample = new FloodSample<Candidate>();
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
  add(refusal: Recorded, refused: Refused): string {
    const now = this.#options.wallClock();
    const policyVersion = this.#options.policyVersion();
    const id = this.#ids.next(refusal, policyVersion, now);
    const pair = this.#sample.count(refusal.policy, refusal.identity, now);
    const candidate = { id, refusal, refused, policyVersion, now };
    if (pair.number > FEW) {
      if (!this.#sample.add(pair, candidate)) this.unrecorded++;
    } else if (this.#kept < BATCH_MAX) this.#keep(candidate, 1);
    else this.unrecorded++;
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
    this.#keepSampled(Number.POSITIVE_INFINITY, PENDING_MAX);
    if (this.#pending.length > 0) await this.#options.store.write(this.#pending).catch(() => undefined);
    this.#options.store.close();
  }

  #keep(candidate: Candidate, refusals: number): void {
    this.#kept++;
    this.#pending.push(this.#record(candidate, refusals));
    if (this.#pending.length <= PENDING_MAX) return;
    this.#pending.shift();
    this.unrecorded++;
  }

  #keepSampled(now: Millis, max: number): void {
    for (const { last, refusals } of this.#sample.take(now, max)) this.#keep(last, refusals);
  }

  #record({ id, refusal, refused, policyVersion, now }: Candidate, refusals: number): DecisionRecord {
    const { decision, policy, line, violated, limit, used, cost, windowSeconds, algorithm } = refusal;
    const { resetMs, identity, identifier, isUnproven, isLocal, fromMemory } = refusal;
    const { method, target, addressFrom, file } = refused.describe();
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
      ...(refusals === 1 ? {} : { refusals }),
    };
  }

  #later(ms: Millis): NodeJS.Timeout {
    const timer = setTimeout(() => void this.#write(), ms);
    timer.unref();
    return timer;
  }

  async #write(): Promise<void> {
    this.#keepSampled(this.#options.wallClock(), Math.min(BATCH_OF_MANY, BATCH_MAX - this.#kept));
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
      delayMs = AGAIN_MS;
    }
    const isIdle = this.#pending.length === 0 && this.#sample.isEmpty;
    this.#timer = isIdle ? undefined : this.#later(delayMs);
  }
}
