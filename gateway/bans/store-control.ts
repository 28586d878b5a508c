/** Implements Control with a store, for all replicas. The first call opens the connection. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { History } from '#gateway/limiter/history.ts';
import { historyKey, readHistory } from '#gateway/limiter/history-store.ts';
import { clear, type Look, look } from '#gateway/limiter/look.ts';
import { historySinceKey, REPLICAS_KEY, SALT_KEY } from '#gateway/limiter/replicas.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import { isErrorReply } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import { REPORT, readStoreReport, type StoreReport } from '#gateway/store/report.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { noteOf, POLICY_BANS_MAX } from './bans.ts';
import { type Change, Control, ControlUnavailableError, TooManyBansError } from './control.ts';
import type { Row } from './rows.ts';
import {
  CHANGE,
  CONTROL_KEYS,
  COUNT_DENIALS,
  denialsKey,
  LIST,
  pastBansKey,
  READ,
  REPLICAS,
  rowKey,
  VERSIONS_KEY,
} from './scripts.ts';
import { listed, readText } from './sync.ts';

const CONNECT_MS: Millis = 2000;
const ANSWER_MS: Millis = 2000;
const CALLS_MAX = 32;

export class StoreControl extends Control {
  readonly #access: StoreAccess;
  readonly #configuredSalt: string | null;
  readonly #clock: Clock;
  readonly #onChange: (row: Row) => Promise<void>;
  #connection: StoreConnection | null = null;
  #connecting: Promise<void> | null = null;
  #calls = 0;

  /**
   * @param configuredSalt null if the store has the salt
   * @param clock clock of this process; the clock of the store may differ by hours
   * @param onChange applies a row in all processes of this gateway, also if the store loses it
   */
  constructor(
    access: StoreAccess,
    configuredSalt: string | null,
    clock: Clock,
    onChange: (row: Row) => Promise<void> = async () => undefined,
  ) {
    super();
    this.#access = access;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#configuredSalt = configuredSalt;
  }

  async salt(): Promise<string> {
    if (this.#configuredSalt !== null) return this.#configuredSalt;
    const salt = await this.#read(SALT_KEY);
    if (salt !== null) return salt;
    throw new ControlUnavailableError('no gateway has used the store yet; start one, or wait a second');
  }

  async replicas(): Promise<readonly string[]> {
    return ((await this.#run(REPLICAS, [REPLICAS_KEY], [])) as unknown[]).map(String);
  }

  look(
    identity: Identity,
    counters: readonly Counter[],
    limits: readonly number[] = [],
    values: readonly (string | null)[] = [],
  ): Promise<Look> {
    return look(this.#run, { identity, counters, limits, values }, this.#clock());
  }

  async reset(identity: Identity, counters: readonly Counter[]): Promise<number> {
    const { states } = await this.look(identity, counters);
    await clear(this.#run, identity, counters);
    // Announce the reset last. A process that forgets its counters earlier would read the old ones from the store.
    await this.change({ kind: 'counters', name: identity.digest, ms: 0, note: '', max: 0 });
    return states.filter(({ a, b }) => a + b > 0).length;
  }

  async countDenials({ digest }: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis> {
    const { bucket, after, withinMs, forMs, growing } = ban;
    // Denials in shadow mode must not delay the first real ban.
    const isShadow = reason === '';
    const denials = denialsKey(digest, isShadow ? `${bucket}:shadow` : bucket);
    const numbers = [count, after, withinMs, forMs, growing ? 1 : 0].map(String);
    const note = isShadow ? '' : noteOf({ reason, policy: bucket });
    const ms = await this.#run(
      COUNT_DENIALS,
      [...CONTROL_KEYS, denials, pastBansKey(isShadow)],
      [digest, ...numbers, note, `${digest} ${bucket}`],
    );
    if (Number(ms) < 0) throw new TooManyBansError(POLICY_BANS_MAX);
    return Number(ms);
  }

  async historySince(name: string): Promise<Millis | null> {
    const since = await this.#read(historySinceKey(name));
    return since === null ? null : Number(since);
  }

  async historyOf(client: Identity): Promise<History | null> {
    const packed = await this.#read(historyKey(client));
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

  protected async change({ kind, name, ms, note, max }: Change) {
    const reply = await this.#run(CHANGE, CONTROL_KEYS, [kind, name, String(ms), note, String(max)]);
    const [was, storeEnd = 0, version = 0] = (reply as unknown[]).map(Number);
    if (version === 0) return { was: false, endsAt: null };
    await this.#onChange({ kind, name, endsAt: ms === 0 ? null : this.#clock() + ms, note, version });
    return { was: was === 1, endsAt: storeEnd };
  }

  protected async find(kind: 'ban', name: string) {
    const text = await this.#read(rowKey(kind, name));
    return text === null ? null : { name, ...readText(text) };
  }

  protected async list(kind: 'ban' | 'shadow', countMax: number) {
    const [total, rows] = (await this.#run(LIST, CONTROL_KEYS, [kind, String(countMax)])) as unknown[];
    return { total: Number(total), rows: listed(kind, rows) };
  }

  async #read(key: string): Promise<string | null> {
    const text = await this.#run(READ, [key], []);
    return text === null ? null : String(text);
  }

  /** @throws ControlUnavailableError */
  readonly #run = async (
    script: StoreScript,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> => {
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
  };

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
