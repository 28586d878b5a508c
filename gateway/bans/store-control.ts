/** Implements Control with a store, for all replicas. The first call opens the connection. */

import type { CounterState } from '#gateway/algorithms/algorithm.ts';
import { scriptWindow } from '#gateway/algorithms/calendar-window.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { Bucket, proofKey } from '#gateway/limiter/charge.ts';
import type { History } from '#gateway/limiter/history.ts';
import { historySinceKey, REPLICAS_KEY, SALT_KEY } from '#gateway/limiter/replicas.ts';
import { FORGET_VISITS, historyKey, readHistory } from '#gateway/limiter/visits.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import { KEYS_PER_SCRIPT_MAX, type StoreConnection, type StoreScript } from '#gateway/store/connection.ts';
import { isErrorReply } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import { REPORT, readStoreReport, type StoreReport } from '#gateway/store/report.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Ban, type BanList, noteOf, POLICY_BANS_MAX, readNote } from './bans.ts';
import { listed, readText } from './change-feed.ts';
import {
  type Control,
  type ControlChange,
  ControlUnavailableError,
  type Look,
  TooManyBansError,
  TooManyShadowsError,
} from './control.ts';
import {
  BAN,
  BANS_KEY,
  CLEAR,
  CONTROL_KEYS,
  COUNT_DENIALS,
  denialsKey,
  entryKey,
  LIST_BANS,
  LOOK,
  NOTE_RESET,
  pastBansKeys,
  READ,
  REPLICAS,
  SHADOW,
  SHADOWED,
  SHADOWS_KEY,
  UNBAN,
  UNSHADOW,
  VERSIONS_KEY,
} from './scripts.ts';

const CONNECT_MS: Millis = 2000;
const ANSWER_MS: Millis = 2000;
const CALLS_MAX = 32;

export class StoreControl implements Control {
  readonly #access: StoreAccess;
  readonly #configuredSalt: string | null;
  readonly #clock: Clock;
  readonly #onChange: (change: ControlChange) => Promise<void>;
  #connection: StoreConnection | null = null;
  #connecting: Promise<void> | null = null;
  #calls = 0;

  /**
   * @param configuredSalt null if the store has the salt
   * @param clock clock of this process; the clock of the store may differ by hours
   * @param onChange applies a change in all processes of this gateway, also if the store loses it
   */
  constructor(
    access: StoreAccess,
    configuredSalt: string | null,
    clock: Clock,
    onChange: (change: ControlChange) => Promise<void> = async () => undefined,
  ) {
    this.#access = access;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#configuredSalt = configuredSalt;
  }

  async salt(): Promise<string> {
    if (this.#configuredSalt !== null) return this.#configuredSalt;
    const salt = await this.#run(READ, [SALT_KEY], []);
    if (typeof salt === 'string') return salt;
    throw new ControlUnavailableError('no gateway has used the store yet; start one, or wait a second');
  }

  async replicas(): Promise<readonly string[]> {
    return ((await this.#run(REPLICAS, [REPLICAS_KEY], [])) as unknown[]).map(String);
  }

  async look(
    identity: Identity,
    counters: readonly Counter[],
    limits: readonly number[] = counters.map(({ policy }) => policy.limit),
    values: readonly (string | null)[] = [],
  ): Promise<Look> {
    const states: CounterState[] = [];
    const used: boolean[] = [];
    let now: Millis = 0;
    let ttlMs = -2;
    for (let at = 0; at === 0 || at < counters.length; at += KEYS_PER_SCRIPT_MAX) {
      const some = counters
        .slice(at, at + KEYS_PER_SCRIPT_MAX)
        .map((counter, i) => new Bucket(counter, identity, [], 1, limits[at + i], values[at + i]));
      const keys = [proofKey(identity), ...some.map(({ key }) => key)];
      const list = some.flatMap(({ algorithm, policy: { windowMs, calendar }, limit, valueKey }) => [
        algorithm.id,
        calendar === null ? windowMs : scriptWindow(calendar, this.#clock()),
        limit,
        valueKey === null ? 0 : keys.push(valueKey),
      ]);
      const reply = await this.#run(LOOK, keys, [JSON.stringify(list)]);
      const [time, ttl, ...numbers] = (reply as unknown[]).map(Number);
      now = time ?? 0;
      ttlMs = ttl ?? -2;
      for (let i = 0; i < numbers.length; i += 3) {
        states.push({ at: now, a: numbers[i] ?? 0, b: numbers[i + 1] ?? 0 });
        used.push(numbers[i + 2] === 1);
      }
    }
    return { now, states, used, provenUntil: ttlMs < 0 ? null : now + ttlMs };
  }

  async reset(identity: Identity, counters: readonly Counter[]): Promise<number> {
    const { states } = await this.look(identity, counters);
    const keys = counters.map((counter) => new Bucket(counter, identity).key);
    for (let at = 0; at < keys.length; at += KEYS_PER_SCRIPT_MAX)
      await this.#run(CLEAR, keys.slice(at, at + KEYS_PER_SCRIPT_MAX), []);
    await this.#run(FORGET_VISITS, [historyKey(identity), proofKey(identity)], []);
    // Announce the reset last. A process that forgets its counters earlier would read the old ones from the store.
    await this.#run(NOTE_RESET, CONTROL_KEYS, [identity.digest]);
    await this.#onChange({ cleared: identity.digest });
    return states.filter(({ a, b }) => a + b > 0).length;
  }

  async ban({ digest }: Identity, forMs: Millis, reason: string): Promise<Ban> {
    const why = { reason, policy: null };
    const args = [digest, String(forMs), noteOf(why)];
    const reply = await this.#run(BAN, CONTROL_KEYS, args);
    const [endsAt = 0, version = 0] = (reply as unknown[]).map(Number);
    if (endsAt === 0) throw new TooManyBansError();
    await this.#onChange({ digest, ban: { endsAt: this.#clock() + forMs, ...why }, version });
    return { endsAt, ...why };
  }

  async countDenials({ digest }: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis> {
    const { bucket, after, withinMs, forMs, growing } = ban;
    // Denials in shadow mode must not delay the first real ban.
    const isShadow = reason === '';
    const own = [denialsKey(digest, isShadow ? `${bucket}:shadow` : bucket), ...pastBansKeys(isShadow)];
    const keys = [...CONTROL_KEYS, ...own];
    const note = isShadow ? '' : noteOf({ reason, policy: bucket });
    const args = [
      digest,
      ...[count, after, withinMs, forMs, growing ? 1 : 0].map(String),
      note,
      `${digest} ${bucket}`,
    ];
    const ms = Number(await this.#run(COUNT_DENIALS, keys, args));
    if (ms < 0) throw new TooManyBansError(POLICY_BANS_MAX);
    return ms;
  }

  async unban({ digest }: Identity): Promise<boolean> {
    const reply = await this.#run(UNBAN, CONTROL_KEYS, [digest]);
    const [wasBanned, version = 0] = (reply as unknown[]).map(Number);
    await this.#onChange({ digest, ban: null, version });
    return wasBanned === 1;
  }

  async banOf({ digest }: Identity): Promise<Ban | null> {
    const text = await this.#run(READ, [entryKey(BANS_KEY, digest)], []);
    if (typeof text !== 'string') return null;
    const { endsAt, note } = readText(text);
    return { endsAt, ...readNote(note) };
  }

  async listBans(countMax: number): Promise<BanList> {
    const [total, bans] = (await this.#run(LIST_BANS, [BANS_KEY], [String(countMax)])) as unknown[];
    return {
      total: Number(total),
      bans: listed(bans).map(({ name, endsAt, note }) => ({ digest: name, endsAt, ...readNote(note) })),
    };
  }

  async shadow(bucket: string, forMs: Millis): Promise<Millis> {
    const reply = await this.#run(SHADOW, CONTROL_KEYS, [bucket, String(forMs)]);
    const [endsAt = 0, version = 0] = (reply as unknown[]).map(Number);
    if (endsAt === 0) throw new TooManyShadowsError();
    await this.#onChange({ bucket, endsAt: this.#clock() + forMs, version });
    return endsAt;
  }

  async unshadow(bucket: string): Promise<boolean> {
    const reply = await this.#run(UNSHADOW, CONTROL_KEYS, [bucket]);
    const [wasShadowed, version = 0] = (reply as unknown[]).map(Number);
    await this.#onChange({ bucket, endsAt: null, version });
    return wasShadowed === 1;
  }

  async shadows(): Promise<ReadonlyMap<string, Millis>> {
    const inShadow = listed(await this.#run(SHADOWED, [SHADOWS_KEY], []));
    return new Map(inShadow.map(({ name, endsAt }) => [name, endsAt]));
  }

  async historySince(name: string): Promise<Millis | null> {
    const since = await this.#run(READ, [historySinceKey(name)], []);
    return since === null ? null : Number(since);
  }

  async historyOf(client: Identity): Promise<History | null> {
    const packed = await this.#run(READ, [historyKey(client)], []);
    return packed === null ? null : readHistory(Number(packed));
  }

  async storeReport(): Promise<StoreReport> {
    const { address } = this.#access;
    const reply = await this.#run(REPORT, [VERSIONS_KEY], []);
    return readStoreReport(reply, address.kind === 'cluster' ? 0 : address.database);
  }

  close(): void {
    this.#connection?.close();
  }

  /** @throws ControlUnavailableError */
  async #run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (this.#calls >= CALLS_MAX)
      throw new ControlUnavailableError(`${CALLS_MAX} requests are waiting for the store; try again`);
    this.#calls++;
    let isSent = false;
    try {
      const connection = await this.#connected();
      isSent = true;
      return await within(ANSWER_MS, connection.run(script, keys, args));
    } catch (error) {
      throw new ControlUnavailableError(`the store is unavailable: ${(error as Error).message}`, {
        cause: error,
        mayBeDone: isSent && !isErrorReply(error),
      });
    } finally {
      this.#calls--;
    }
  }

  async #connected(): Promise<StoreConnection> {
    this.#connection ??= openStore(this.#access, { silenceMs: ANSWER_MS, onChange: () => undefined });
    this.#connecting ??= this.#connection.connect();
    if (!this.#connection.ready) {
      // After a failed attempt, the connection keeps trying.
      await within(CONNECT_MS, this.#connecting).catch(() => undefined);
      if (!this.#connection.ready) throw this.#connection.whyDown();
    }
    return this.#connection;
  }
}
