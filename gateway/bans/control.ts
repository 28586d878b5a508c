/**
 * Operators can read and clear the counters of an identity, ban it, and put policies in shadow mode.
 * With a store, changes apply to all replicas (store-control.ts). Without one, they apply to the only process
 * (memory-control.ts). A change is in force in all processes of this gateway when its call returns, and in other
 * gateways within a second.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { History } from '#gateway/limiter/history.ts';
import type { Look } from '#gateway/limiter/look.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { PolicyBan } from '#gateway/policy/policy.ts';
import type { StoreReport } from '#gateway/store/report.ts';
import type { Millis } from '#shared/clock.ts';
import { type Ban, type BanList, noteOf, readNote } from './bans.ts';
import { type Kind, OPERATOR_ROWS_MAX, POLICY_ROWS_MAX, REMOVAL_MS, type Row } from './rows.ts';

/** A row to write. */
export interface Change extends Pick<Row, 'kind' | 'name' | 'note'> {
  /** How long it is kept. */
  readonly ms: Millis;
  /** Maximum number of rows; null for a removal, which may replace the row that ends first. */
  readonly max: number | null;
  /** Whether a longer ban, and one by an operator, stays. */
  readonly yields: boolean;
}

interface Changed {
  /** Whether there was a row in force before. */
  readonly was: boolean;
  /** End of the new row; null if there was no room for it, or a longer one stays. */
  readonly endsAt: Millis | null;
}

type Active = Pick<Row, 'name' | 'endsAt' | 'note'>;

export abstract class Control {
  protected abstract change(change: Change): Promise<Changed>;
  /** @returns null if there is no such row in force */
  protected abstract find(kind: 'ban', name: string): Promise<Active | null>;
  /** Lists rows and removals of one kind, the newest last. */
  protected abstract list(kind: Kind): Promise<readonly Active[]>;
  /**
   * Counts denials of a client by a policy. When there are enough, it notes a ban and ends the count. During a ban it
   * counts none.
   *
   * @param offender client and policy
   * @returns the length of the ban; 0 if there are not enough denials
   */
  protected abstract offend(offender: string, denials: number, ban: PolicyBan): Promise<Millis>;

  abstract salt(): Promise<string>;
  /**
   * @param limits the limit of this identity for each counter; default: the limits of the policies
   * @param values the digest of a value for each counter of different values; default: none
   */
  abstract look(
    identity: Identity,
    counters: readonly Counter[],
    limits?: readonly number[],
    values?: readonly (string | null)[],
  ): Promise<Look>;
  /** Clears the counters. @returns how many counters were not empty */
  abstract reset(identity: Identity, counters: readonly Counter[]): Promise<number>;
  /**
   * Returns when the histories of clients began; null if none are kept.
   *
   * @param name of the histories, see KeptHistories
   */
  abstract historySince(name: string): Promise<Millis | null>;
  /** Returns the days on which a client had good replies; null if none are stored. */
  abstract historyOf(client: Identity): Promise<History | null>;
  /** @returns null without a store @throws ControlUnavailableError */
  abstract storeReport(): Promise<StoreReport | null>;
  abstract close(): void;

  /** Bans the identity, and replaces an existing ban. @throws TooManyChangesError */
  async ban({ digest }: Identity, forMs: Millis, reason: string): Promise<Ban> {
    const why = { reason, policy: null };
    return { endsAt: await this.#set('ban', digest, forMs, noteOf(why)), ...why };
  }

  /** @returns whether there was a ban */
  unban({ digest }: Identity): Promise<boolean> {
    return this.remove('ban', digest);
  }

  /**
   * Counts denials of a client by a policy with `ban`. When there are enough, it bans the client. It does not replace a
   * longer ban, or a ban by an operator. Until the end of the new ban, no further denials count. So a client whose ban
   * an operator lifts is not banned again at once.
   *
   * @param reason reason of the ban; empty in shadow mode, which counts but does not ban
   * @returns the length of the ban; 0 if there are not enough denials
   * @throws TooManyChangesError although some room is left for bans by operators
   */
  async countDenials({ digest }: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis> {
    const { bucket } = ban;
    // Denials in shadow mode must not delay the first real ban.
    const ms = await this.offend(`${digest} ${bucket}${reason === '' ? ' shadow' : ''}`, count, ban);
    if (ms === 0 || reason === '') return ms;
    const note = noteOf({ reason, policy: bucket });
    const change = { kind: 'ban', name: digest, ms, note, max: POLICY_ROWS_MAX, yields: true } as const;
    const { was, endsAt } = await this.change(change);
    if (!was && endsAt === null) throw new TooManyChangesError(POLICY_ROWS_MAX);
    return ms;
  }

  async banOf({ digest }: Identity): Promise<Ban | null> {
    const row = await this.find('ban', digest);
    return row === null || row.note === null ? null : { endsAt: row.endsAt, ...readNote(row.note) };
  }

  /** Lists active bans, newest first. @param countMax maximum length of the list */
  async listBans(countMax: number): Promise<BanList> {
    const bans = (await this.list('ban')).flatMap(({ name, endsAt, note }) =>
      note === null ? [] : [{ digest: name, endsAt, ...readNote(note) }],
    );
    return { total: bans.length, bans: bans.slice(-countMax).reverse() };
  }

  /**
   * Puts the policies of this bucket in shadow mode: they count and report but do not deny. Replaces an existing shadow
   * mode.
   *
   * @returns the end of the shadow mode
   * @throws TooManyChangesError
   */
  shadow(bucket: string, forMs: Millis): Promise<Millis> {
    return this.#set('shadow', bucket, forMs, '');
  }

  /** Ends shadow mode. @returns whether the policies were in shadow mode */
  unshadow(bucket: string): Promise<boolean> {
    return this.remove('shadow', bucket);
  }

  /** Returns the end of each shadow mode, by bucket. */
  async shadows(): Promise<ReadonlyMap<string, Millis>> {
    const active = (await this.list('shadow')).filter(({ note }) => note !== null);
    return new Map(active.map(({ name, endsAt }) => [name, endsAt]));
  }

  /**
   * Others hear of a removal even if the store does not have the row, because one of them may.
   *
   * @returns whether there was such a row
   */
  protected async remove(kind: Kind, name: string): Promise<boolean> {
    const removal = { kind, name, ms: REMOVAL_MS[kind], note: null, max: null, yields: false };
    return (await this.change(removal)).was;
  }

  async #set(kind: 'ban' | 'shadow', name: string, ms: Millis, note: string): Promise<Millis> {
    const change = { kind, name, ms, note, max: OPERATOR_ROWS_MAX, yields: false };
    const { endsAt } = await this.change(change);
    if (endsAt === null) throw new TooManyChangesError(OPERATOR_ROWS_MAX);
    return endsAt;
  }
}

/** The store is unavailable. The message gives the reason. */
export class ControlUnavailableError extends Error {}

export class TooManyChangesError extends Error {
  constructor(max: number) {
    super(`there are already ${max} bans and other changes; lift some bans, or wait until one ends`);
    this.name = 'TooManyChangesError';
  }
}
