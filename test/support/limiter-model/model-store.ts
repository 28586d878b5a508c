/**
 * A store for the exhaustive check of the limiter. It understands the calls of the gateway's scripts and decides them with
 * the gateway's own memory store, on a virtual clock. test/gateway/limiter/conformance.ts holds the scripts and the memory
 * store to the same decisions.
 */
import { LEASE_MS } from '#gateway/algorithms/concurrency.ts';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import type { Bucket, Charge } from '#gateway/limiter/charge.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { memberOf } from '#gateway/limiter/leases.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { HEARTBEAT, LEAVE } from '#gateway/limiter/replicas.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import { RELEASE, RENEW } from '#gateway/limiter/stored-leases.ts';
import type { StoreScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';

const REPLICA_SILENT_MS: Millis = 15_000;

export class ModelStore {
  readonly #clock: Clock;
  readonly #charge: Charge;
  readonly #bucket: Bucket;
  readonly #replicas = new Map<string, Millis>();
  #known = emptyCounters();

  /** @param charge the only one that is ever asked for; it has one bucket */
  constructor(clock: Clock, charge: Charge) {
    this.#clock = clock;
    this.#charge = charge;
    const [bucket] = charge.buckets;
    if (bucket === undefined) throw new Error('the charge has a bucket');
    this.#bucket = bucket;
  }

  /** Loses all data, as FLUSHALL or a restart without persistence does. */
  empty(): void {
    this.#known = emptyCounters();
    this.#replicas.clear();
  }

  /** Units of the bucket that are used now. */
  get used(): number {
    const { policy, capacity, limit } = this.#bucket;
    return new BucketState(policy, this.#state(), capacity, limit).used;
  }

  /** The contents, for telling states apart. */
  get contents(): string {
    const { a, b } = this.#state();
    return `${this.used} ${this.#bucket.policy.algorithm === 'token-bucket' ? '' : `${a} ${b}`} ${[...this.#replicas.keys()]}`;
  }

  execute(script: StoreScript, keys: readonly string[], args: readonly string[]): unknown {
    switch (script) {
      case SPEND:
        return this.#spend(JSON.parse(args[0] ?? '') as readonly (number | string)[]);
      case HEARTBEAT:
        return this.#heartbeat(args);
      case RENEW:
        return keys.map((key, i) => this.#known.leases.take({ key, member: args[i] ?? '' }, this.#clock()))
          .length;
      case RELEASE:
        return keys.map((key, i) => this.#known.leases.give({ key, member: args[i] ?? '' })).length;
      case LEAVE:
        return this.#replicas.delete(args[0] ?? '');
      default:
        throw new Error('the model store does not know this script');
    }
  }

  #spend([rules, adjusted, charged, ...lists]: readonly (number | string)[]): string {
    const now = this.#clock();
    const adjustments = lists.slice(Number(rules), Number(rules) + Number(adjusted)).map(Number);
    const charges = lists.slice(Number(rules) + Number(adjusted)).map(Number);
    const leases = lists.slice(Number(rules) + Number(adjusted) + Number(charged));
    for (let i = 0; i < adjustments.length; i += 3) {
      const amount = adjustments[i + 1] ?? 0;
      this.#known.adjust({ bucket: this.#bucket, amount, chargedAt: adjustments[i + 2] ?? 0 }, now);
    }
    const reply = [0, now * 1000];
    for (let i = 0; i < Number(charged); i += 4) {
      const { a, b } = this.#state();
      const admitted = this.#decide(charges[i] ?? 0);
      for (const [position, { leases: own }] of admitted.entries()) {
        if (own === null) continue;
        // The memory store names its leases itself.
        this.#known.leases.give({ key: this.#bucket.key, member: memberOf(own, 0) });
        const member = memberOf(String(leases[i / 4]), position);
        this.#known.leases.take({ key: this.#bucket.key, member }, now);
      }
      reply.push(admitted.length, a, b);
    }
    return JSON.stringify(reply);
  }

  /** @returns what came of those that are admitted */
  #decide(asking: number): Spent[] {
    const memory = new MemoryLimiter({ clock: this.#clock, known: this.#known });
    const admitted: Spent[] = [];
    for (let i = 0; i < asking; i++)
      memory.spend(this.#charge, {
        onSpent(spent) {
          if (spent.admitted > 0) admitted.push(spent);
        },
        onStoreUnavailable() {
          throw new Error('memory is always there');
        },
      });
    return admitted;
  }

  #heartbeat([name = '', salt = '']: readonly string[]): unknown {
    const now = this.#clock();
    this.#replicas.set(name, now);
    for (const [other, at] of this.#replicas) if (at <= now - REPLICA_SILENT_MS) this.#replicas.delete(other);
    const before = [...this.#replicas.keys()].filter((other) => other < name).length;
    return [this.#replicas.size, before, salt, String(now)];
  }

  #state() {
    const now = this.#clock();
    const { leases } = this.#known;
    for (const lease of leases.renewedBefore(now - LEASE_MS, Number.POSITIVE_INFINITY)) leases.give(lease);
    return this.#known.state(this.#bucket, now);
  }
}

function emptyCounters(): KnownCounters {
  return new KnownCounters({ countersMax: 8, credentialsMax: 8 });
}
