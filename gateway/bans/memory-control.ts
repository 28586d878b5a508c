/** Implements Control without a store, for a gateway with one process. */
import type { Identity } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { History } from '#gateway/limiter/history.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BANS_MAX, type Ban, type BanList, type Bans, POLICY_BAN_MS_MAX, POLICY_BANS_MAX } from './bans.ts';
import { type Control, type Look, TooManyBansError, TooManyShadowsError } from './control.ts';
import { SHADOWS_MAX, type Shadows } from './shadows.ts';

interface MemoryControlOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
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

export class MemoryControl implements Control {
  readonly #options: MemoryControlOptions;
  /** Offences by digest and policy. Shadow mode has its own map, so that it does not displace entries of real bans. */
  readonly #offences = { enforce: new Map<string, Offences>(), shadow: new Map<string, Offences>() };

  #historySince: Millis | null = null;

  constructor(options: MemoryControlOptions) {
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

  async ban(identity: Identity, forMs: Millis, reason: string): Promise<Ban> {
    return this.#ban(identity, forMs, { reason, policy: null }, BANS_MAX);
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
    const known = this.#options.bans.of(identity.digest, now);
    const isLonger = known === null || (known.policy !== null && known.endsAt < now + ms);
    if (isDue && reason !== '' && isLonger)
      this.#ban(identity, ms, { reason, policy: ban.bucket }, POLICY_BANS_MAX);
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

  #ban({ digest }: Identity, forMs: Millis, why: Pick<Ban, 'reason' | 'policy'>, bansMax: number): Ban {
    const { bans } = this.#options;
    const now = this.#now;
    if (bans.size >= bansMax) bans.dropEnded(now);
    if (bans.size >= bansMax && bans.endOf(digest, now) === 0) throw new TooManyBansError(bansMax);
    const ban = { endsAt: now + forMs, ...why };
    bans.set(digest, ban);
    return ban;
  }

  async unban(identity: Identity): Promise<boolean> {
    const was = await this.banOf(identity);
    this.#options.bans.delete(identity.digest);
    return was !== null;
  }

  async banOf({ digest }: Identity): Promise<Ban | null> {
    return this.#options.bans.of(digest, this.#now);
  }

  async listBans(countMax: number): Promise<BanList> {
    const { bans } = this.#options;
    bans.dropEnded(this.#now);
    const newest = [...bans.all].slice(-countMax).reverse();
    return { total: bans.size, bans: newest.map(([digest, ban]) => ({ digest, ...ban })) };
  }

  async shadow(bucket: string, forMs: Millis): Promise<Millis> {
    const { shadows } = this.#options;
    if (shadows.endsAt.size >= SHADOWS_MAX && !shadows.endsAt.has(bucket)) throw new TooManyShadowsError();
    const endsAt = this.#now + forMs;
    shadows.set(bucket, endsAt);
    return endsAt;
  }

  async unshadow(bucket: string): Promise<boolean> {
    return this.#options.shadows.delete(bucket);
  }

  async shadows(): Promise<ReadonlyMap<string, Millis>> {
    return this.#options.shadows.endsAt;
  }

  async storeReport(): Promise<null> {
    return null;
  }

  close(): void {
    // There is no connection to close.
  }

  get #now(): Millis {
    return this.#options.clock();
  }
}
