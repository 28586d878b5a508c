/**
 * Copies all rows between two databases with the same schema, SQLite or PostgreSQL. Tables are copied in the order of
 * their references, in slices by primary key. Each slice is one transaction in the target, which also stores the
 * progress.
 */
import { sql } from 'kysely';
import { codeOf, withFault } from '../faults.ts';
import type { Database } from '../schema.ts';
import { digestOf, isSame } from './digest.ts';
import { dropIndexes, type Index, makeIndexes } from './indexes.ts';
import { advanceNote, beginNote, type Note, readNote, type TableProgress } from './note.ts';
import type { Shape, TableShape } from './shape.ts';
import { keyOf, type Row, readSlices, type Slice } from './slices.ts';

/** The copy is not possible. The message is for the operator. */
export class CopyRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'CopyRefused';
  }
}

interface CopyOptions {
  readonly shape: Shape;
  readonly from: Database;
  readonly to: Database;
  /** Identifies the source. An interrupted copy can be resumed only from the same source. */
  readonly source: string;
  /** Whether to delete what an unfinished copy has left in the target, instead of resuming it. */
  readonly isRestart: boolean;
  /** Whether the target is PostgreSQL, which cannot store NUL in text. */
  readonly refusesNul: boolean;
  /** Whether the target is SQLite, whose indexes are created at the end; see indexes.ts. */
  readonly isIndexedLast: boolean;
  /** Called with the number of rows since the last call. The first call includes the rows of an earlier run. */
  readonly onRows?: (count: number) => void;
}

export interface Copied {
  readonly rows: number;
  /** Rows that an earlier run has already copied. */
  readonly resumedAt: number;
}

export async function copyRows(options: CopyOptions): Promise<Copied> {
  const { shape, from, to, onRows = () => undefined } = options;
  const note = await begin(options);
  let rows = 0;
  let resumedAt = 0;
  let isIndexed = options.isIndexedLast;
  for (const table of shape.tables) {
    let progress: TableProgress = note?.tables.get(table.name) ?? { lastKey: null, rows: 0 };
    resumedAt += progress.rows;
    onRows(progress.rows);
    for await (const slice of readSlices(from, table, progress.lastKey)) {
      if (options.refusesNul) refuseNul(table, slice);
      const after = { lastKey: slice.lastKey, rows: progress.rows + slice.rows.length };
      const before = progress;
      await to.transaction().execute(async (trx) => {
        // Advance the note first, so that the second of two concurrent copies fails with a clear message instead of on
        // duplicate rows.
        await advanceNote(trx, table.name, before, after);
        if (isIndexed) await dropIndexes(trx);
        await insert(trx, table, slice.rows);
      });
      isIndexed = false;
      progress = after;
      rows += slice.rows.length;
      onRows(slice.rows.length);
    }
  }
  if (options.isIndexedLast) await makeIndexes(to, shape.indexes, indexRefused);
  return { rows, resumedAt };
}

function indexRefused({ name }: Index, reason: Error): CopyRefused {
  return new CopyRefused(`the target refuses rows by its index ${name}: ${reason.message}`, reason);
}

/** @returns progress of an earlier run; null if there is none @throws CopyRefused */
async function begin({ shape, to, source, isRestart }: CopyOptions): Promise<Note | null> {
  const note = await readNote(to);
  if (note !== null && isRestart) await empty(to, shape);
  else if (note !== null) {
    if (note.source !== source) {
      throw new CopyRefused(
        `the target has part of a copy of ${note.source}; resume that copy, or add --restart to delete it`,
      );
    }
    if (shape.tables.every(({ name }) => note.tables.has(name))) return note;
    throw new CopyRefused(
      'the target has part of a copy that another version began; add --restart to delete it',
    );
  } else await refuseData(to, shape);
  await to.transaction().execute(async (trx) => {
    // Rows that migrations have inserted come with the source.
    for (const { name } of seeded(shape)) await sql`delete from ${sql.table(name)}`.execute(trx);
    await beginNote(trx, { source, tables: shape.tables, isRestart: note !== null });
  });
  return null;
}

function seeded({ tables }: Shape): readonly TableShape[] {
  return tables.filter(({ seed }) => seed.rows > 0);
}

const NAMED_MAX = 3;

async function refuseData(to: Database, { tables }: Shape): Promise<void> {
  const found: string[] = [];
  for (const table of tables) {
    if (!isSame(await digestOf(to, table), table.seed)) found.push(table.name);
  }
  if (found.length > 0) {
    const more = found.length > NAMED_MAX ? ` and ${found.length - NAMED_MAX} more` : '';
    const named = found.slice(0, NAMED_MAX).join(', ');
    throw new CopyRefused(`the target has other data (in ${named}${more}); name an empty database`);
  }
}

/** Deletes all rows, from referring tables first, in slices of one transaction. */
async function empty(to: Database, { tables }: Shape): Promise<void> {
  for (const { name, key } of tables.toReversed()) {
    const columns = sql.join(key.map((column) => sql.ref(column)));
    let deleted = 1n;
    while (deleted > 0n) {
      const { numAffectedRows = 0n } = await sql`
        delete from ${sql.table(name)} where (${columns}) in
          (select ${columns} from ${sql.table(name)} order by ${columns} limit ${DELETED_AT_ONCE})`.execute(
        to,
      );
      deleted = numAffectedRows;
    }
  }
}

const DELETED_AT_ONCE = 5_000;

/** Powers of two, so that few different statements are prepared for any number of rows. */
const INSERTED_AT_ONCE = 64;

async function insert(trx: Database, table: TableShape, rows: readonly Row[]): Promise<void> {
  const columns = sql.join(table.columns.map((column) => sql.ref(column)));
  let size = INSERTED_AT_ONCE;
  for (let start = 0; start < rows.length; start += size) {
    while (size > rows.length - start) size /= 2;
    const values = rows
      .slice(start, start + size)
      .map((row) => sql`(${sql.join(table.columns.map((column) => row[column] ?? null))})`);
    await sql`insert into ${sql.table(table.name)} (${columns}) values ${sql.join(values)}`
      .execute(trx)
      .catch((error: unknown) => {
        throw refusedBy(table, rows.slice(start, start + size), error);
      });
  }
}

/** Leaves database faults unchanged and explains constraint violations. */
function refusedBy(table: TableShape, rows: readonly Row[], error: unknown): unknown {
  const code = codeOf(error);
  if (withFault(error) !== error || !/^(SQLITE_CONSTRAINT|2[23]|54000)/.test(code)) return error;
  const [first, last] = [rows[0], rows.at(-1)].map((row) => (row === undefined ? '' : nameOf(table, row)));
  return new CopyRefused(
    `the target refuses rows of ${table.name}, from ${first} to ${last}: ${(error as Error).message}`,
    error,
  );
}

function refuseNul(table: TableShape, { rows }: Slice): void {
  for (const row of rows) {
    const column = table.texts.find((name) => String(row[name] ?? '').includes('\0'));
    if (column === undefined) continue;
    throw new CopyRefused(
      `the column ${column} of ${table.name} ${nameOf(table, row)} has a NUL character, which PostgreSQL cannot store; take it out of the source`,
    );
  }
}

function nameOf(table: TableShape, row: Row): string {
  return keyOf(table, row).join('/');
}
