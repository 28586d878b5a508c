/**
 * A store for the exhaustive check of the limiter. It understands the calls of the gateway's scripts and decides them with
 * the gateway's own memory store, on a virtual clock. test/gateway/limiter/conformance.ts holds the scripts and the memory
 * store to the same decisions.
 */
import { LEASE_MS } from '#gateway/algorithms/concurrency.ts';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import type { Bucket, Charge } from '#gateway/limiter/charge.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { memberOf, RELEASE, RENEW } from '#gateway/limiter/leases.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { HEARTBEAT, LEAVE } from '#gateway/limiter/replicas.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import type { StoreScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';

const REPLICA_SILENT_MS: Millis = 15_000;
/** Numbers of an adjustment, the place of its amount among them, and numbers of a charge with one bucket (script.ts). */
const [ADJUSTMENT, AMOUNT, CHARGE] = [7, 4, 8];

export class ModelStore {
  readonly #clock: Clock;
  readonly #charges: readonly Charge[];
  readonly #bucket: Bucket;
  readonly #replicas = new Map<string, Millis>();
  #known = emptyCounters();

  /** @param charges all that are ever asked for. Each has the same bucket, with a value of its own if values count */
  constructor(clock: Clock, charges: readonly Charge[]) {
    this.#clock = clock;
    this.#charges = charges;
    this.#bucket = bucketOf(charges[0]);
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
    const values = this.#charges.map((charge) => this.#known.whatOf(bucketOf(charge), this.#clock()));
    return `${this.used} ${this.#bucket.policy.algorithm === 'token-bucket' ? '' : `${a} ${b}`} ${values} ${[...this.#replicas.keys()]}`;
  }

  execute(script: StoreScript, keys: readonly string[], args: readonly string[]): unknown {
    switch (script) {
      case SPEND:
        return this.#spend([...keys], JSON.parse(args[0] ?? '') as readonly (number | string)[]);
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

  /** Units that stay charged if the reply to a call is lost. A place in flight stays taken only if its release is lost. */
  chargedBy(script: StoreScript, keys: readonly string[], [json = '']: readonly string[]): number {
    if (this.#bucket.algorithm.isHeld) return script === RELEASE ? keys.length : 0;
    if (script !== SPEND) return 0;
    const { adjustments, charges } = partsOf(JSON.parse(json) as readonly (number | string)[]);
    let units = 0;
    for (let i = 0; i < adjustments.length; i += ADJUSTMENT) {
      units += Math.max(0, Number(adjustments[i + AMOUNT]));
    }
    for (let i = 0; i < charges.length; i += CHARGE) units += Number(charges[i]);
    return units;
  }

  /** @param keys of the adjustments, and then of the charges */
  #spend(keys: string[], call: readonly (number | string)[]): string {
    const now = this.#clock();
    const { adjustments, charges, leases } = partsOf(call);
    for (let i = 0; i < adjustments.length; i += ADJUSTMENT) {
      const charge = this.#nextCharge(keys, 0);
      this.#adjust(charge, Number(adjustments[i + AMOUNT]), Number(adjustments[i + AMOUNT + 1]), now);
    }
    const reply = [0, now * 1000];
    const markers = this.#bucket.unlessProven.length;
    for (let i = 0; i < charges.length; i += CHARGE) {
      const charge = this.#nextCharge(keys, markers);
      const { a, b } = this.#state(bucketOf(charge));
      const what = this.#known.whatOf(bucketOf(charge), now);
      const admitted = this.#decide(charge, Number(charges[i]));
      for (const [position, { leases: own }] of admitted.entries()) {
        if (own === null) continue;
        // The memory store names its leases itself.
        this.#known.leases.give({ key: this.#bucket.key, member: memberOf(own, 0) });
        const member = memberOf(String(leases[i / CHARGE]), position);
        this.#known.leases.take({ key: this.#bucket.key, member }, now);
      }
      reply.push(admitted.length, a, b);
      if (what !== 'request') reply.push(Number(what === 'used-value'));
    }
    return JSON.stringify(reply);
  }

  #adjust(charge: Charge, amount: number, chargedAt: Millis, now: Millis): void {
    const bucket = bucketOf(charge);
    const { a } = this.#state(bucket);
    this.#known.adjust({ bucket, amount, chargedAt }, now);
    if (this.#state(bucket).a > a) this.#known.use(bucket, now);
  }

  /** Takes the keys of one charge. The key of a value tells which one it is. */
  #nextCharge(keys: string[], markers: number): Charge {
    const own = keys.splice(0, markers + (this.#bucket.value === null ? 1 : 2));
    const { valueKey } = this.#bucket;
    const charge = this.#charges.find((one) => valueKey === null || bucketOf(one).valueKey === own.at(-1));
    if (charge === undefined) throw new Error('there is a charge');
    return charge;
  }

  /** @returns what came of those that are admitted */
  #decide(charge: Charge, asking: number): Spent[] {
    const memory = new MemoryLimiter({ clock: this.#clock, known: this.#known });
    const admitted: Spent[] = [];
    for (let i = 0; i < asking; i++)
      memory.spend(charge, {
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

  #state(bucket = this.#bucket) {
    const now = this.#clock();
    const { leases } = this.#known;
    for (const lease of [...leases.renewedBefore(now - LEASE_MS)]) leases.give(lease);
    return this.#known.state(bucket, now);
  }
}

function bucketOf(charge: Charge | undefined): Bucket {
  const bucket = charge?.buckets[0];
  if (bucket === undefined) throw new Error('a charge has a bucket');
  return bucket;
}

/** Divides the arguments of the script. */
function partsOf([adjusted, charged, ...lists]: readonly (number | string)[]) {
  const chargedAt = Number(adjusted);
  const leasesAt = chargedAt + Number(charged);
  return {
    adjustments: lists.slice(0, chargedAt),
    charges: lists.slice(chargedAt, leasesAt),
    leases: lists.slice(leasesAt),
  };
}

function emptyCounters(): KnownCounters {
  return new KnownCounters({ countersMax: 32 });
}
