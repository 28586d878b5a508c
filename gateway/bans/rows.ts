/**
 * A row is a change by an operator or a policy, as this process knows it. Of two rows for the same name the later
 * version holds, so it does not matter in which order they arrive. A row can also say that something was removed.
 * Without it, a process that had not heard of the removal could bring the ban back.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import { BAN_MS_MAX, Bans, readNote } from './bans.ts';

/** `counters` names a client whose counters were cleared. Its rows are always removals. */
export type Kind = 'ban' | 'shadow' | 'counters';

export interface Row {
  readonly kind: Kind;
  /** Digest of the client, or its network; bucket of the policies in shadow mode. */
  readonly name: string;
  /** When it ends; when all have heard of a removal. On the clock of this process. */
  readonly endsAt: Millis;
  /** null if this row is a removal. */
  readonly note: string | null;
  readonly version: number;
}

/** Maximum number of rows, in the store and in each process. Beyond it, the row that ends first is dropped. */
export const ROWS_MAX = 12_000;
/** Operators add no bans and no shadow modes beyond this number of rows. */
export const OPERATOR_ROWS_MAX = 10_000;
/** Policies add no bans beyond this number of rows. The rest is reserved for operators. */
export const POLICY_ROWS_MAX = 9000;
/** How long processes can hear of a removal. A process that was away for longer may still know the ban. */
export const REMOVAL_MS: Readonly<Record<Kind, Millis>> = {
  ban: BAN_MS_MAX,
  shadow: BAN_MS_MAX,
  counters: 86_400_000,
};

interface RowsOptions {
  readonly clock: Clock;
  /** Called when the set of policies in shadow mode has changed. */
  readonly onShadows: () => void;
}

export class Rows {
  readonly bans = new Bans();
  readonly #options: RowsOptions;
  /** Rows by kind and name, the one that arrived last at the end. */
  readonly #rows = new Map<string, Row>();
  /** No row ends before this time. */
  #nextEnd: Millis = Number.POSITIVE_INFINITY;
  /** The end of each shadow mode, by bucket. */
  shadows: ReadonlyMap<string, Millis> = new Map();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RowsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#rows.size;
  }

  get all(): Row[] {
    return [...this.#rows.values()];
  }

  /** @returns null if there is no such row in force */
  find(kind: Kind, name: string): Row | null {
    const row = this.#rows.get(`${kind} ${name}`);
    return row === undefined || row.note === null || row.endsAt <= this.#options.clock() ? null : row;
  }

  /** @returns the rows that are new to this process */
  take(rows: readonly Row[]): Row[] {
    const taken = rows.filter((row) => this.#take(row));
    if (taken.some(({ kind }) => kind === 'shadow')) this.#useShadows();
    return taken;
  }

  remove(kind: Kind, name: string): void {
    this.#delete(`${kind} ${name}`);
    if (kind === 'shadow') this.#useShadows();
  }

  dropEnded(): void {
    const now = this.#options.clock();
    if (now < this.#nextEnd) return;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const [key, { endsAt }] of this.#rows)
      if (endsAt > now) this.#nextEnd = Math.min(this.#nextEnd, endsAt);
      else this.#delete(key);
    this.#useShadows();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #take(row: Row): boolean {
    const { kind, name, endsAt, note, version } = row;
    const key = `${kind} ${name}`;
    const known = this.#rows.get(key);
    if (known !== undefined && known.version >= version) return false;
    this.#delete(key);
    this.#rows.set(key, row);
    if (kind === 'ban' && note !== null) this.bans.set(name, { endsAt, ...readNote(note) });
    this.#nextEnd = Math.min(this.#nextEnd, endsAt);
    if (this.#rows.size > ROWS_MAX) this.#dropFirst();
    return true;
  }

  #dropFirst(): void {
    let [first] = this.#rows;
    for (const entry of this.#rows)
      if (first === undefined || entry[1].endsAt < first[1].endsAt) first = entry;
    if (first !== undefined) this.#delete(first[0]);
  }

  #delete(key: string): void {
    const row = this.#rows.get(key);
    this.#rows.delete(key);
    if (row?.kind === 'ban') this.bans.delete(row.name);
  }

  #useShadows(): void {
    const before = this.shadows;
    const active = this.all.filter(({ kind, note }) => kind === 'shadow' && note !== null);
    this.shadows = new Map(active.map(({ name, endsAt }) => [name, endsAt]));
    clearTimeout(this.#timer);
    if (active.length > 0) {
      const waitMs = Math.min(...active.map(({ endsAt }) => endsAt)) - this.#options.clock();
      const end = (): void => {
        this.dropEnded();
        // A timer may be a little early. Then it is set again.
        this.#useShadows();
      };
      this.#timer = setTimeout(end, Math.max(1, waitMs)).unref();
    }
    const isSame = before.size === active.length && active.every(({ name }) => before.has(name));
    if (!isSame) this.#options.onShadows();
  }
}
