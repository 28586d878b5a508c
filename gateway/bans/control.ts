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
import { BANS_MAX, type Ban, type BanList, noteOf, readNote } from './bans.ts';
import type { ActiveRow, Row } from './rows.ts';
import { SHADOWS_MAX } from './shadows.ts';

/** A row to write. */
export interface Change extends Pick<Row, 'kind' | 'name' | 'note'> {
  /** Length; 0 removes the row. */
  readonly ms: Millis;
  /** Maximum number of rows of this kind. */
  readonly max: number;
}

interface Changed {
  /** Whether there was a row before. */
  readonly was: boolean;
  /** End of the new row; null if there was no room for it. */
  readonly endsAt: Millis | null;
}

type Active = Pick<ActiveRow, 'name' | 'endsAt' | 'note'>;

export abstract class Control {
  protected abstract change(change: Change): Promise<Changed>;
  /** @returns null if there is no such row in force */
  protected abstract find(kind: 'ban', name: string): Promise<Active | null>;
  /** Lists rows in force, newest first. */
  protected abstract list(
    kind: 'ban' | 'shadow',
    countMax: number,
  ): Promise<{ readonly total: number; readonly rows: readonly Active[] }>;

  abstract salt(): Promise<string>;
  /** Returns the names of the processes that share the counters. */
  abstract replicas(): Promise<readonly string[]>;
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
   * Counts denials of a client by a policy with `ban`. When there are enough, it bans the client. It does not replace a
   * longer ban, or a ban by an operator. Until the end of the new ban, no further denials count. So a client whose ban
   * an operator lifts is not banned again at once.
   *
   * @param reason reason of the ban; empty in shadow mode, which counts but does not ban
   * @returns the length of the ban; 0 if there are not enough denials
   * @throws TooManyBansError although some room is left for bans by operators
   */
  abstract countDenials(identity: Identity, ban: PolicyBan, count: number, reason: string): Promise<Millis>;
  /**
   * Returns when the histories of clients began; null if none are kept.
   *
   * @param name of the histories, see HistoriesInUse
   * @param haveEnded without a store: they begin again, because nobody has used them. A store knows this itself
   */
  abstract historySince(name: string, haveEnded?: boolean): Promise<Millis | null>;
  /** Returns the days on which a client had good replies; null if none are stored. */
  abstract historyOf(client: Identity): Promise<History | null>;
  /** @returns null without a store @throws ControlUnavailableError */
  abstract storeReport(): Promise<StoreReport | null>;
  abstract close(): void;

  /** Bans the identity, and replaces an existing ban. @throws TooManyBansError */
  async ban({ digest }: Identity, forMs: Millis, reason: string): Promise<Ban> {
    const why = { reason, policy: null };
    const change = { kind: 'ban', name: digest, ms: forMs, note: noteOf(why), max: BANS_MAX } as const;
    const { endsAt } = await this.change(change);
    if (endsAt === null) throw new TooManyBansError();
    return { endsAt, ...why };
  }

  /** @returns whether there was a ban */
  async unban({ digest }: Identity): Promise<boolean> {
    return (await this.change({ kind: 'ban', name: digest, ms: 0, note: '', max: 0 })).was;
  }

  async banOf({ digest }: Identity): Promise<Ban | null> {
    const row = await this.find('ban', digest);
    return row === null ? null : { endsAt: row.endsAt, ...readNote(row.note) };
  }

  /** Lists active bans, newest first. @param countMax maximum length of the list */
  async listBans(countMax: number): Promise<BanList> {
    const { total, rows } = await this.list('ban', countMax);
    return {
      total,
      bans: rows.map(({ name, endsAt, note }) => ({ digest: name, endsAt, ...readNote(note) })),
    };
  }

  /**
   * Puts the policies of this bucket in shadow mode: they count and report but do not deny. Replaces an existing shadow
   * mode.
   *
   * @returns the end of the shadow mode
   * @throws TooManyShadowsError
   */
  async shadow(bucket: string, forMs: Millis): Promise<Millis> {
    const change = { kind: 'shadow', name: bucket, ms: forMs, note: '', max: SHADOWS_MAX } as const;
    const { endsAt } = await this.change(change);
    if (endsAt === null) throw new TooManyShadowsError();
    return endsAt;
  }

  /** Ends shadow mode. @returns whether the policies were in shadow mode */
  async unshadow(bucket: string): Promise<boolean> {
    return (await this.change({ kind: 'shadow', name: bucket, ms: 0, note: '', max: 0 })).was;
  }

  /** Returns the end of each shadow mode, by bucket. */
  async shadows(): Promise<ReadonlyMap<string, Millis>> {
    const { rows } = await this.list('shadow', SHADOWS_MAX);
    return new Map(rows.map(({ name, endsAt }) => [name, endsAt]));
  }
}

/** The store is unavailable. The message gives the reason. */
export class ControlUnavailableError extends Error {
  /** Whether the call was sent but not answered. Then the store may have executed it. */
  readonly mayBeDone: boolean;

  constructor(
    message: string,
    { mayBeDone = false, ...options }: ErrorOptions & { mayBeDone?: boolean } = {},
  ) {
    super(message, options);
    this.mayBeDone = mayBeDone;
  }
}

export class TooManyShadowsError extends Error {
  constructor() {
    super(`${SHADOWS_MAX} policies are already in shadow mode; end some of them, or edit the policy file`);
    this.name = 'TooManyShadowsError';
  }
}

export class TooManyBansError extends Error {
  constructor(max = BANS_MAX) {
    super(`there are already ${max} bans; lift some of them, or wait until one ends`);
    this.name = 'TooManyBansError';
  }
}
