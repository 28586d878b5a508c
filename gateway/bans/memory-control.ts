/** Implements Control without a store, for a gateway with one process. */
import type { Identity } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { History } from '#gateway/limiter/history.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Look } from '#gateway/limiter/look.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { POLICY_BAN_MS_MAX, readNote } from './bans.ts';
import { type Change, Control } from './control.ts';
import type { Kind, Row, Rows } from './rows.ts';

interface MemoryControlOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly rows: Rows;
  readonly salt: string;
  /** Returns when the histories of clients began; null if none are kept. */
  readonly historySince: () => Millis | null;
}

/** The denials of one client by one policy, when these stop counting, and its last ban by it. */
const NO_OFFENCES = { denials: 0, denialsEndAt: 0, banEndsAt: 0, bans: 0 };
const OFFENCES_MAX = 10_000;

export class MemoryControl extends Control {
  readonly #options: MemoryControlOptions;
  /** Offences by client and policy, the one that was noted last at the end. */
  readonly #offences = new Map<string, typeof NO_OFFENCES>();
  #version = 0;

  constructor(options: MemoryControlOptions) {
    super();
    this.#options = options;
  }

  async salt(): Promise<string> {
    return this.#options.salt;
  }

  async look(
    identity: Identity,
    counters: readonly Counter[],
    limits: readonly number[] = counters.map(({ policy }) => policy.limit),
    values: readonly (string | null)[] = [],
  ): Promise<Look> {
    const { known } = this.#options;
    const now = Math.floor(this.#now);
    const buckets = counters.map((counter, i) => new Bucket(counter, identity, [], 1, limits[i], values[i]));
    return {
      now,
      states: buckets.map((bucket) => known.state(bucket, now)),
      used: buckets.map((bucket) => known.whatOf(bucket, now) === 'used-value'),
      provenUntil: known.proofs.provenUntil(identity),
    };
  }

  async reset(identity: Identity, counters: readonly Counter[]): Promise<number> {
    const { states } = await this.look(identity, counters);
    this.#options.known.forget(identity, counters);
    return states.filter(({ a, b }) => a + b > 0).length;
  }

  async historyOf(client: Identity): Promise<History | null> {
    return this.#options.known.histories.of(client);
  }

  async historySince(): Promise<Millis | null> {
    return this.#options.historySince();
  }

  async storeReport(): Promise<null> {
    return null;
  }

  close(): void {
    // There is no connection to close.
  }

  protected async change({ kind, name, ms, note, max, yields }: Change) {
    const { rows } = this.#options;
    const known = rows.find(kind, name);
    const was = known !== null;
    if (note === null) {
      rows.remove(kind, name);
      return { was, endsAt: null };
    }
    const endsAt = this.#now + ms;
    if (yields && was && (known.endsAt >= endsAt || readNote(known.note ?? '').policy === null))
      return { was, endsAt: null };
    rows.dropEnded();
    if (!was && max !== null && rows.size >= max) return { was, endsAt: null };
    rows.take([{ kind, name, endsAt, note, version: ++this.#version }]);
    return { was, endsAt };
  }

  protected async find(kind: 'ban', name: string): Promise<Row | null> {
    const { rows } = this.#options;
    rows.dropEnded();
    return rows.find(kind, name);
  }

  protected async list(kind: Kind): Promise<readonly Row[]> {
    const { rows } = this.#options;
    rows.dropEnded();
    return rows.all.filter((row) => row.kind === kind);
  }

  protected async offend(
    offender: string,
    count: number,
    { after, withinMs, forMs, growing }: PolicyBan,
  ): Promise<Millis> {
    const now = this.#now;
    const known = this.#offences.get(offender) ?? NO_OFFENCES;
    if (known.banEndsAt > now) return 0;
    const isCounting = now < known.denialsEndAt;
    const denials = count + (isCounting ? known.denials : 0);
    if (denials < after) {
      const denialsEndAt = isCounting ? known.denialsEndAt : now + withinMs;
      this.#note(offender, { ...known, denials, denialsEndAt });
      return 0;
    }
    const bans = growing && now < known.banEndsAt + POLICY_BAN_MS_MAX ? known.bans : 0;
    const ms = Math.min(forMs * 2 ** bans, POLICY_BAN_MS_MAX);
    this.#note(offender, { ...NO_OFFENCES, banEndsAt: now + ms, bans: bans + 1 });
    return ms;
  }

  #note(offender: string, offences: typeof NO_OFFENCES): void {
    // Append the entry, because the first one is dropped when the map is full.
    this.#offences.delete(offender);
    this.#offences.set(offender, offences);
    const [oldest] = this.#offences.keys();
    if (this.#offences.size > OFFENCES_MAX && oldest !== undefined) this.#offences.delete(oldest);
  }

  get #now(): Millis {
    return this.#options.clock();
  }
}
