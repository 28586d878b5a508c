/** Implements Control with a store, for all replicas. The first call opens the connection. */
import type { Identity } from '#gateway/identity/digest.ts';
import { type History, historyKey, unpacked } from '#gateway/limiter/history.ts';
import { clear, type Look, look } from '#gateway/limiter/look.ts';
import { historySinceKey, SALT_KEY } from '#gateway/limiter/replicas.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreScript } from '#gateway/store/connection.ts';
import { LazyStore } from '#gateway/store/open.ts';
import { REPORT, readStoreReport, type StoreReport } from '#gateway/store/report.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type Change, Control, ControlUnavailableError } from './control.ts';
import type { Kind, Row } from './rows.ts';
import {
  CHANGE,
  CONTROL_KEYS,
  COUNT_DENIALS,
  denialsKey,
  FIND,
  LIST,
  PAST_BANS_KEY,
  READ,
  VERSIONS_KEY,
} from './scripts.ts';
import { keyOf, readRow, readRows, textOf } from './sync.ts';

const CALLS_MAX = 32;

export class StoreControl extends Control {
  readonly #access: StoreAccess;
  readonly #configuredSalt: string | null;
  readonly #clock: Clock;
  readonly #onChange: (row: Row) => Promise<void>;
  readonly #store: LazyStore;
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
    this.#store = new LazyStore(access);
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

  look(...asked: Parameters<Control['look']>): Promise<Look> {
    return look(this.#run, this.#clock(), ...asked);
  }

  async reset(identity: Identity, counters: readonly Counter[]): Promise<number> {
    const { states } = await this.look(identity, counters);
    await clear(this.#run, identity, counters);
    // Announce the reset last. A process that forgets its counters earlier would read the old ones from the store.
    await this.remove('counters', identity.digest);
    return states.filter(({ a, b }) => a + b > 0).length;
  }

  async historySince(name: string): Promise<Millis | null> {
    const since = await this.#read(historySinceKey(name));
    return since === null ? null : Number(since);
  }

  async historyOf(client: Identity): Promise<History | null> {
    const packed = await this.#read(historyKey(client));
    return packed === null ? null : unpacked(Number(packed));
  }

  async storeReport(): Promise<StoreReport> {
    const { address } = this.#access;
    const reply = await this.#run(REPORT, [VERSIONS_KEY], []);
    return readStoreReport(reply, address.kind === 'cluster' ? 0 : address.database);
  }

  close(): void {
    this.#store.close();
  }

  protected async change(change: Change) {
    const { kind, name, ms, note, max, yields } = change;
    const args = [keyOf(change), ms, textOf(note), max ?? '', yields ? 1 : 0].map(String);
    const reply = await this.#run(CHANGE, CONTROL_KEYS, args);
    const [was, storeEnd = 0, version = 0] = (reply as unknown[]).map(Number);
    if (version === 0) return { was: was === 1, endsAt: null };
    // Processes hear of bans by policies when they ask next. A flood of them must not make this one ask for each.
    if (!yields) await this.#onChange({ kind, name, endsAt: this.#clock() + ms, note, version });
    return { was: was === 1, endsAt: storeEnd };
  }

  protected async find(kind: 'ban', name: string) {
    const text = await this.#run(FIND, CONTROL_KEYS, [keyOf({ kind, name })]);
    return text === null ? null : readRow(keyOf({ kind, name }), 0, String(text));
  }

  protected async list(kind: Kind): Promise<readonly Row[]> {
    return readRows(await this.#run(LIST, CONTROL_KEYS, [kind]));
  }

  protected async offend(
    offender: string,
    denials: number,
    { after, withinMs, forMs, growing }: PolicyBan,
  ): Promise<Millis> {
    const args = [offender, denials, withinMs, after, forMs, growing ? 1 : 0].map(String);
    return Number(await this.#run(COUNT_DENIALS, [denialsKey(offender), PAST_BANS_KEY], args));
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
    try {
      return await this.#store.run(script, keys, args);
    } catch (error) {
      throw new ControlUnavailableError(`the store is unavailable: ${(error as Error).message}`, {
        cause: error,
      });
    } finally {
      this.#calls--;
    }
  };
}
