/** Implements Control without a store, for a gateway with one process. */
import type { Identity } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { History } from '#gateway/limiter/history.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Look } from '#gateway/limiter/look.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { noteOf, POLICY_BAN_MS_MAX, POLICY_BANS_MAX, readNote } from './bans.ts';
import { type Change, Control, TooManyBansError } from './control.ts';
import type { ActiveRow, Rows } from './rows.ts';

interface MemoryControlOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly rows: Rows;
  readonly salt: string;
  /** Name of this process. */
  readonly replica: string;
}

/** Denials and bans of one client by one policy. */
interface Offences {
  readonly denials: number;
  readonly denialsEndAt: Millis;
  /** End of the latest ban; 0 if there was none. */
  readonly banEndsAt: Millis;
  readonly bans: number;
}

const NO_OFFENCES: Offences = { denials: 0, denialsEndAt: 0, banEndsAt: 0, bans: 0 };
const OFFENCES_MAX = 10_000;

export class MemoryControl extends Control {
  readonly #options: MemoryControlOptions;
  /** Offences by digest and policy. Shadow mode has its own map, so that it does not displace entries of real bans. */
  readonly #offences = { enforce: new Map<string, Offences>(), shadow: new Map<string, Offences>() };

  #historySince: Millis | null = null;
  #version = 0;

  constructor(options: MemoryControlOptions) {
    super();
    this.#options = options;
  }

  async salt(): Promise<string> {
    return this.#options.salt;
  }

  async replicas(): Promise<readonly string[]> {
    return [this.#options.replica];
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

  /** Histories begin when it is first asked. */
  async historySince(_name: string, haveEnded = false): Promise<Millis> {
    const since = haveEnded ? null : this.#historySince;
    this.#historySince = since ?? this.#options.clock();
    return this.#historySince;
  }

  async countDenials(identity: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis> {
    const now = this.#now;
    const key = `${identity.digest} ${ban.bucket}`;
    const offences = this.#offences[reason === '' ? 'shadow' : 'enforce'];
    const { denials, denialsEndAt, banEndsAt, bans } = offences.get(key) ?? NO_OFFENCES;
    if (banEndsAt > now) return 0;
    const isCounting = now < denialsEndAt;
    const counted = (isCounting ? denials : 0) + count;
    const isDue = counted >= ban.after;
    const pastBans = now < banEndsAt + POLICY_BAN_MS_MAX ? bans : 0;
    const ms = Math.min(ban.forMs * 2 ** (ban.growing ? pastBans : 0), POLICY_BAN_MS_MAX);
    if (isDue && reason !== '') this.#banFor(identity.digest, ms, { reason, policy: ban.bucket });
    // Append the entry, because the first one is dropped when the map is full.
    offences.delete(key);
    offences.set(key, {
      denials: counted,
      denialsEndAt: isDue ? 0 : isCounting ? denialsEndAt : now + ban.withinMs,
      banEndsAt: isDue ? now + ms : banEndsAt,
      bans: pastBans + (isDue ? 1 : 0),
    });
    const [oldest] = offences.keys();
    if (offences.size > OFFENCES_MAX && oldest !== undefined) offences.delete(oldest);
    return isDue ? ms : 0;
  }

  async storeReport(): Promise<null> {
    return null;
  }

  close(): void {
    // There is no connection to close.
  }

  /** Bans a client unless it has a longer ban, or one by an operator. */
  #banFor(name: string, ms: Millis, why: { readonly reason: string; readonly policy: string }): void {
    const known = this.#active('ban', name);
    const isByOperator = known !== null && readNote(known.note).policy === null;
    if (isByOperator || (known?.endsAt ?? 0) >= this.#now + ms) return;
    const { endsAt } = this.#change({ kind: 'ban', name, ms, note: noteOf(why), max: POLICY_BANS_MAX });
    if (endsAt === null) throw new TooManyBansError(POLICY_BANS_MAX);
  }

  protected async change(change: Change) {
    return this.#change(change);
  }

  protected async find(kind: 'ban', name: string): Promise<ActiveRow | null> {
    return this.#active(kind, name);
  }

  protected async list(kind: 'ban' | 'shadow', countMax: number) {
    const { rows } = this.#options;
    rows.dropEnded(this.#now);
    const all = [...rows.of(kind).values()];
    return { total: all.length, rows: all.slice(-countMax).reverse() };
  }

  #change({ kind, name, ms, note, max }: Change) {
    const { rows } = this.#options;
    const now = this.#now;
    const was = kind !== 'counters' && this.#active(kind, name) !== null;
    if (kind !== 'counters' && ms > 0 && !was && rows.of(kind).size >= max) {
      rows.dropEnded(now);
      if (rows.of(kind).size >= max) return { was, endsAt: null };
    }
    const endsAt = now + ms;
    rows.take([{ kind, name, endsAt: ms > 0 ? endsAt : null, note, version: ++this.#version }]);
    return { was, endsAt };
  }

  #active(kind: 'ban' | 'shadow', name: string): ActiveRow | null {
    const { rows } = this.#options;
    const row = rows.of(kind).get(name);
    if (row === undefined || row.endsAt > this.#now) return row ?? null;
    rows.dropEnded(this.#now);
    return null;
  }

  get #now(): Millis {
    return this.#options.clock();
  }
}
