/**
 * Some gateways' limiters, one store, one bucket, and everything that can happen next. All decisions are made by the real
 * `GuardedLimiter` and the real memory store. Only timers and the network between them are the checker's.
 */
import type { Bucket, Charge } from '#gateway/limiter/charge.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { HEARTBEAT } from '#gateway/limiter/replicas.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { chargeOf, part, partUnless, policy, VALUES, withValue } from '#test/support/spend.ts';
import { accessTo } from '#test/support/store.ts';
import { Ledger } from './ledger.ts';
import { ModelConnection } from './model-connection.ts';
import { ModelStore } from './model-store.ts';
import { VirtualTime } from './virtual-time.ts';

/** The most times that each event may happen in one history. */
export interface Bounds {
  readonly requests: number;
  /** Replies that stay on their way. */
  readonly lateReplies: number;
  /** Calls that the store answers with an error. */
  readonly errors: number;
  /** All connections break. */
  readonly storeLost: number;
  /** The connection of one gateway breaks, or is closed because the store is silent for too long. */
  readonly connectionsLost: number;
  readonly storeEmptied: number;
  readonly gatewaysKilled: number;
  readonly windowChanges: number;
  /** Requests that end, where places in flight are counted. */
  readonly finishes: number;
}

export interface Setting {
  readonly algorithm: Algorithm;
  /** Whether different values count. */
  readonly values: boolean;
  readonly gateways: number;
  readonly limit: number;
  /** The bucket is that of newcomers, and the client is one. */
  readonly newcomers?: boolean;
  readonly bounds: Bounds;
}

interface Gateway {
  readonly limiter: GuardedLimiter;
  readonly connection: ModelConnection;
  /** Requests in flight that hold a place. */
  readonly held: { readonly spent: Spent; readonly position: number; readonly id: number }[];
  isAlive: boolean;
  /** How often it has lost the store. */
  outages: number;
  /** Requests without a decision. */
  waiting: number;
  /** Events since the gateway last had nothing in flight and a closed circuit. */
  history: string;
}

const WINDOW_SECONDS = 10;
const WINDOW_MS = WINDOW_SECONDS * 1000;
/** After an outage these have exactly the charges of what was admitted, and of what may be charged twice. */
const EXACT: ReadonlySet<string> = new Set([
  'fixed-window',
  'sliding-window',
  'calendar-window',
  'concurrency',
]);
const START = 170_000_000 * WINDOW_MS + 5000;

export class World {
  readonly #setting: Setting;
  readonly #time = new VirtualTime(START);
  /** One for each value, if the policy counts different values; else one. */
  readonly #charges: readonly Charge[];
  readonly #bucket: Bucket;
  readonly #store: ModelStore;
  readonly #gateways: Gateway[] = [];
  readonly #left: Record<keyof Bounds, number>;
  readonly #ledger: Ledger;
  #requests = 0;
  /** Number of charges that were asked for. Values are interchangeable, so they are used in order. */
  #charged = 0;
  #hadOutage = false;
  /** Units in flight when a gateway lost the store. Each may be charged twice. */
  #twice = 0;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#left = { ...setting.bounds };
    const { algorithm, values, limit, newcomers = false } = setting;
    const windowless = algorithm === 'concurrency' ? { windowMs: 0, windowSeconds: 0 } : {};
    const of = policy('p', limit, WINDOW_SECONDS, { algorithm, ...windowless, ...(values ? VALUES : {}) });
    this.#bucket = newcomers ? partUnless(of, 'everyone', ['client']) : part(of);
    this.#charges = values
      ? Array.from({ length: limit + 1 }, (_, i) => chargeOf(withValue(this.#bucket, `value-${i}`)))
      : [chargeOf(this.#bucket)];
    this.#store = new ModelStore(this.#time.clock, this.#charges);
    this.#ledger = new Ledger(algorithm, values, limit, WINDOW_MS);
  }

  /** Starts all gateways; each has heard of the others. */
  async start(): Promise<void> {
    for (let i = 0; i < this.#setting.gateways; i++) await this.#startGateway(i);
    for (const i of this.#gateways.keys()) {
      while (this.#at(i).connection.pending === 0) await this.#time.fireNext(i);
      await this.#answer(i);
    }
    for (const { limiter } of this.#gateways)
      if (limiter.stats().replicas !== this.#setting.gateways)
        throw new Error('each has heard of the others');
    for (const gateway of this.#gateways) gateway.history = '';
  }

  async #startGateway(i: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<ModelConnection>();
    const limiter = new GuardedLimiter({
      store: accessTo('redis://model'),
      openStore: (_access, options) => {
        const connection = new ModelConnection(this.#store, this.#time.clock, options);
        resolve(connection);
        return connection;
      },
      rememberedMax: 32,
      clock: this.#time.clock,
      log: { warn() {}, info() {} },
      budgetMs: 1,
      replica: String(i),
      salt: 'salt',
      onSalt() {},
    });
    const connection = await promise;
    this.#gateways.push({
      limiter,
      connection,
      held: [],
      isAlive: true,
      outages: 0,
      waiting: 0,
      history: '',
    });
    await this.#time.run(i, () => void limiter.start());
    await this.#answer(i);
  }

  /** Everything that can happen next. */
  enabled(): string[] {
    const events: string[] = [];
    const left = this.#left;
    let isCut = false;
    for (const [i, { limiter, connection, held, isAlive, waiting }] of this.#gateways.entries()) {
      if (!isAlive) continue;
      if (left.requests > 0)
        for (let k = 0; k <= this.#charged && k < this.#charges.length; k++) events.push(`request ${i} ${k}`);
      if (connection.pending > 0) events.push(`answer ${i}`);
      if (connection.pending > 0 && left.errors > 0) events.push(`fail ${i}`);
      if (connection.unexecuted > 0 && left.lateReplies > 0) events.push(`late ${i}`);
      const isOpen = !limiter.stats().available;
      if (waiting === 0 && isOpen && connection.ready && connection.pending === 0) events.push(`time ${i}`);
      if (held.length > 0 && left.finishes > 0) events.push(`finish ${i}`);
      if (connection.ready && left.connectionsLost > 0) events.push(`cut ${i}`);
      if (left.gatewaysKilled > 0) events.push(`kill ${i}`);
      isCut ||= !connection.ready;
    }
    if (isCut) events.push('back');
    else if (left.storeLost > 0) events.push('lose');
    if (left.storeEmptied > 0) events.push('empty');
    if (left.windowChanges > 0) events.push('window');
    return events;
  }

  async happen(event: string): Promise<void> {
    const [kind, index, charge = '0'] = event.split(' ');
    const i = Number(index ?? -1);
    switch (kind) {
      case 'request':
        this.#left.requests--;
        await this.#request(i, Number(charge));
        break;
      case 'answer':
        await this.#answer(i);
        break;
      case 'late':
        this.#left.lateReplies--;
        this.#at(i).connection.execute();
        break;
      case 'fail':
        this.#left.errors--;
        await this.#lose(i, 'fail', (connection) => connection.fail());
        break;
      case 'time':
        await this.#passTime(i);
        break;
      case 'finish':
        this.#left.finishes--;
        await this.#finish(i);
        break;
      case 'cut':
        this.#left.connectionsLost--;
        await this.#lose(i, 'cut', (connection) => connection.close());
        break;
      case 'lose':
        this.#left.storeLost--;
        for (const [each, { isAlive }] of this.#gateways.entries())
          if (isAlive) await this.#lose(each, 'cut', (connection) => connection.close());
        break;
      case 'back':
        for (const [each, { isAlive, connection }] of this.#gateways.entries())
          if (isAlive && !connection.ready) await this.#happenTo(each, 'back', () => connection.open());
        break;
      case 'empty':
        this.#left.storeEmptied--;
        this.#store.empty();
        break;
      case 'kill':
        this.#left.gatewaysKilled--;
        this.#kill(i);
        break;
      case 'window':
        this.#left.windowChanges--;
        this.#time.now = (Math.floor(this.#time.now / WINDOW_MS) + 1.5) * WINDOW_MS;
        break;
      default:
        throw new Error(`nothing is called ${event}`);
    }
    for (const gateway of this.#gateways) this.#look(gateway);
  }

  /** Describes what is wrong with this state; null if nothing is. */
  violation(): string | null {
    const { gateways, limit, bounds } = this.#setting;
    const emptied = bounds.storeEmptied - this.#left.storeEmptied;
    const most = (1 + emptied) * limit + (this.#hadOutage ? limit - Math.floor(limit / gateways) : 0);
    const { admitted } = this;
    if (admitted > most) return `${admitted} are admitted, at most ${most} may be`;
    if (emptied > 0 || !this.#isQuiet) return null;
    // While the store is away a token bucket drains there and here (docs/policies-in-detail.md, the bound).
    const isExactAfter = this.#setting.algorithm !== 'token-bucket' || !this.#hadOutage;
    if (isExactAfter && this.#store.used < admitted)
      return `${admitted} are admitted, the store counts ${this.#store.used}`;
    // After an outage values stay in the store that were not admitted, because they are never given back.
    const { algorithm, values } = this.#setting;
    if (this.#hadOutage && (values || !EXACT.has(algorithm))) return null;
    if (this.#store.used > admitted + this.#twice)
      return `${admitted} are admitted, ${this.#twice} more may be charged, the store counts ${this.#store.used}`;
    return this.#ledger.wrongDenial(this.#twice);
  }

  /** Units of the bucket that all admitted requests use now. */
  get admitted(): number {
    return this.#ledger.usedAt(this.#time.now);
  }

  /** Equal for states with the same future. */
  digest(): string {
    const now = this.#time.now;
    const gateways = this.#gateways.map(({ limiter, connection, held, isAlive, waiting, history }) => {
      if (!isAlive) return 'dead';
      const { available, replicas } = limiter.stats();
      const known = limiter.known.state(this.#bucket, now);
      const isExhausted = this.#charges.map((charge) => limiter.knownExhausted(charge) !== null);
      const knows = [
        Math.ceil(known.a / (this.#setting.algorithm === 'token-bucket' ? WINDOW_MS : 1)),
        known.b,
        ...this.#charges.map(({ buckets: [bucket] }) =>
          bucket === undefined ? null : limiter.known.whatOf(bucket, now),
        ),
      ];
      return [
        available,
        replicas,
        connection.ready,
        knows,
        isExhausted,
        waiting,
        held.length,
        history,
        connection.contents,
      ];
    });
    return JSON.stringify([
      Math.floor(now / WINDOW_MS),
      Object.values(this.#left),
      this.#hadOutage,
      this.#twice,
      this.#store.contents,
      this.#ledger.contents(now),
      this.#charged,
      gateways,
    ]);
  }

  get #isQuiet(): boolean {
    return this.#gateways.every(
      ({ limiter, connection, isAlive }) =>
        isAlive && connection.ready && connection.pending === 0 && limiter.stats().available,
    );
  }

  #at(i: number): Gateway {
    const gateway = this.#gateways[i];
    if (gateway === undefined) throw new Error(`there is no gateway ${i}`);
    return gateway;
  }

  async #happenTo(i: number, what: string, work: () => void): Promise<void> {
    this.#at(i).history += `${what};`;
    await this.#time.run(i, work);
  }

  #look(gateway: Gateway): void {
    const { limiter, connection, isAlive, waiting } = gateway;
    const { outages } = limiter.stats();
    if (outages > gateway.outages) {
      gateway.outages = outages;
      this.#hadOutage = true;
      this.#twice += connection.giveUp();
    }
    if (!isAlive || !limiter.stats().available || !connection.ready) return;
    if (waiting === 0 && connection.pending === 0) gateway.history = '';
  }

  #request(i: number, which: number): Promise<void> {
    const gateway = this.#at(i);
    const { limiter, connection, held } = gateway;
    const charge = this.#charges[which];
    if (charge === undefined) throw new Error(`there is no charge ${which}`);
    this.#charged = Math.max(this.#charged, which + 1);
    const value = charge.buckets[0]?.value ?? null;
    return this.#happenTo(i, `request ${which}`, () => {
      if (limiter.knownExhausted(charge) !== null) {
        this.#ledger.deny(this.#time.now, value);
        return;
      }
      gateway.waiting++;
      limiter.spend(charge, {
        onSpent: (spent, position) => {
          gateway.waiting--;
          const at = spent.isLocal ? this.#time.now : connection.decidedAt;
          if (position >= spent.admitted) {
            // The share of a gateway may be less than what is left.
            if (!spent.isLocal) this.#ledger.deny(at, value);
            return;
          }
          const id = this.#requests++;
          this.#ledger.admit(id, at, value);
          if (spent.leases !== null) held.push({ spent, position, id });
        },
        onStoreUnavailable: () => {
          throw new Error('the policy counts alone');
        },
      });
    });
  }

  async #answer(i: number): Promise<void> {
    const { connection } = this.#at(i);
    if (connection.unexecuted === connection.pending) connection.execute();
    const heard = connection.contents;
    await this.#happenTo(i, `heard ${heard}`, () => connection.hear());
  }

  /** Lets time pass for one gateway, until something comes of it. The timers of the others are late. */
  async #passTime(i: number): Promise<void> {
    const gateway = this.#at(i);
    const { limiter, connection } = gateway;
    gateway.history += 'time;';
    const { sent } = connection;
    const { waiting } = gateway;
    const { available } = limiter.stats();
    while (
      connection.sent === sent &&
      gateway.waiting === waiting &&
      limiter.stats().available === available &&
      (await this.#time.fireNext(i))
    );
    // Nothing depends on the order of heartbeats, but on what the gateway does after one.
    if (connection.pending === 1 && connection.oldest === HEARTBEAT) await this.#answer(i);
  }

  async #finish(i: number): Promise<void> {
    const { limiter, held } = this.#at(i);
    const first = held.shift();
    if (first === undefined) return;
    this.#ledger.finish(first.id);
    await this.#happenTo(i, 'finish', () => limiter.release(first.spent, first.position));
  }

  /** A gateway loses the store, and what was on its way may have been charged. */
  async #lose(i: number, what: string, how: (connection: ModelConnection) => void): Promise<void> {
    const { connection } = this.#at(i);
    this.#twice += connection.giveUp();
    this.#hadOutage = true;
    await this.#happenTo(i, what, () => how(connection));
  }

  #kill(i: number): void {
    const gateway = this.#at(i);
    gateway.isAlive = false;
    for (const { id } of gateway.held) this.#ledger.finish(id);
    this.#time.stop(i);
  }
}
