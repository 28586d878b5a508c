/**
 * A store for the exhaustive check of the limiter. It understands the calls of the gateway's scripts and decides them with
 * the gateway's own memory store, on a virtual clock. test/gateway/limiter/conformance.ts holds the scripts and the memory
 * store to the same decisions.
 */
import type { Charge, Part } from '#gateway/limiter/charge.ts';
import { GIVE_BACK_GENERAL, SPEND_GENERAL } from '#gateway/limiter/general-script.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { RELEASE, RENEW } from '#gateway/limiter/lease-scripts.ts';
import { LEASE_MS, memberOf } from '#gateway/limiter/leases.ts';
import { levelOf } from '#gateway/limiter/level.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { HEARTBEAT, LEAVE } from '#gateway/limiter/replicas.ts';
import { SPEND } from '#gateway/limiter/spend-script.ts';
import type { StoreScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';

const REPLICA_SILENT_MS: Millis = 15_000;

type Rows = readonly number[];

export class ModelStore {
  readonly #clock: Clock;
  readonly #charge: Charge;
  readonly #part: Part;
  readonly #replicas = new Map<string, Millis>();
  #known = emptyCounters();

  /** @param charge the only one that is ever asked for; it has one part */
  constructor(clock: Clock, charge: Charge) {
    this.#clock = clock;
    this.#charge = charge;
    const [part] = charge.parts;
    if (part === undefined) throw new Error('the charge has a part');
    this.#part = part;
  }

  /** Loses all data, as FLUSHALL or a restart without persistence does. */
  empty(): void {
    this.#known = emptyCounters();
    this.#replicas.clear();
  }

  /** What is used of the bucket now. */
  get used(): number {
    return levelOf(this.#part.policy, this.#held(), this.#clock()).used;
  }

  /** The contents, for telling states apart. */
  get contents(): string {
    const { a, b } = this.#held();
    return `${this.used} ${this.#part.policy.algorithm === 'token-bucket' ? '' : `${a} ${b}`} ${[...this.#replicas.keys()]}`;
  }

  execute(script: StoreScript, keys: readonly string[], args: readonly string[]): unknown {
    switch (script) {
      case SPEND:
        return this.#spend(...(JSON.parse(args[0] ?? '') as [Rows, Rows, Rows]));
      case SPEND_GENERAL:
        return this.#spendGeneral(...(JSON.parse(args[0] ?? '') as [Rows, Rows, Rows, string[]?]));
      case GIVE_BACK_GENERAL:
        return this.#giveBack(JSON.parse(args[0] ?? '') as Rows);
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

  #spend(_rows: Rows, charges: Rows, owed: Rows): string {
    const now = this.#clock();
    const { windowMs } = this.#part.policy;
    for (let i = 0; i < owed.length; i += 2) {
      const used = this.#known.used(this.#part, now) + (owed[i + 1] ?? 0);
      this.#known.note(this.#part, used, (Math.floor(now / windowMs) + 1) * windowMs, 0, now);
    }
    const used: number[] = [];
    const cut: number[] = [];
    for (let i = 0; i < charges.length; i += 3) {
      const asking = charges[i] ?? 0;
      used.push(this.#known.used(this.#part, now));
      const admitted = this.#decide(asking).length;
      if (admitted < asking) cut.push(i / 3, admitted);
    }
    return JSON.stringify([now, ...used, ...cut]);
  }

  #spendGeneral(_rows: Rows, charges: Rows, owed: Rows, leases: readonly string[] = []): string {
    const now = this.#clock();
    for (let i = 0; i < owed.length; i += 3) this.#addOwed(owed[i + 1] ?? 0, owed[i + 2] ?? 0);
    const reply = [now];
    for (let i = 0; i < charges.length; i += 4) {
      const { a, b } = this.#held();
      const admitted = this.#decide(charges[i] ?? 0);
      for (const [position, { leases: own }] of admitted.entries()) {
        if (own === null) continue;
        // The memory store names its leases itself.
        this.#known.leases.give({ key: this.#part.key, member: memberOf(own, 0) });
        const member = memberOf(leases[i / 4] ?? '', position);
        this.#known.leases.take({ key: this.#part.key, member }, now);
      }
      reply.push(admitted.length, 0, a, b);
    }
    return JSON.stringify(reply);
  }

  #addOwed(units: number, window: number): void {
    const now = this.#clock();
    const { algorithm, windowMs } = this.#part.policy;
    const { levels } = this.#known;
    if (algorithm === 'sliding-window') levels.charge(this.#part, units, window * windowMs, this.#part.limit);
    else levels.note(this.#part, { a: this.#held().a + units, b: 0 }, now);
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

  #giveBack(list: Rows): number {
    const now = this.#clock();
    const { algorithm, windowMs } = this.#part.policy;
    for (let i = 0; i < list.length; i += 5) {
      const units = list[i + 3] ?? 0;
      const chargedAt = list[i + 4] ?? 0;
      const isSame = Math.floor(now / windowMs) === Math.floor(chargedAt / windowMs);
      if (isSame || algorithm !== 'fixed-window')
        this.#known.giveBack({ part: this.#part, units, chargedAt }, now, now);
    }
    return list.length / 5;
  }

  #heartbeat([name = '', salt = '']: readonly string[]): unknown {
    const now = this.#clock();
    this.#replicas.set(name, now);
    for (const [other, at] of this.#replicas) if (at <= now - REPLICA_SILENT_MS) this.#replicas.delete(other);
    const before = [...this.#replicas.keys()].filter((other) => other < name).length;
    return [this.#replicas.size, before, salt, String(now)];
  }

  #held() {
    const now = this.#clock();
    const { leases } = this.#known;
    for (const lease of leases.toldBefore(now - LEASE_MS, Number.POSITIVE_INFINITY)) leases.give(lease);
    return this.#known.held(this.#part, now);
  }
}

function emptyCounters(): KnownCounters {
  return new KnownCounters({ countersMax: 8, credentialsMax: 8 });
}
