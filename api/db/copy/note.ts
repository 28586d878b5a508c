/**
 * Progress of a copy, stored in the target in the transactions of the rows. With it an interrupted copy can be resumed,
 * and the API refuses to start on a partial copy. The table is dropped at the end of the copy.
 */
import { sql } from 'kysely';
import { hasTable } from '../dialect.ts';
import { codeOf } from '../faults.ts';
import type { Database } from '../schema.ts';
import type { TableShape } from './shape.ts';
import type { Key } from './slices.ts';

const TABLE = 'copyProgress';

/** The database is the target of an unfinished copy. The message is for the operator. */
export class CopyUnfinished extends Error {
  constructor() {
    super(
      'DATABASE_URL: a copy into this database has not ended; run the same "db copy" again to resume it, or name another database',
    );
    this.name = 'CopyUnfinished';
  }
}

export async function refuseUnfinishedCopy(db: Database): Promise<void> {
  if (await hasNote(db)) throw new CopyUnfinished();
}

export interface Note {
  /** The source database, in the form of `describe` in location.ts. */
  readonly source: string;
  readonly tables: ReadonlyMap<string, TableProgress>;
}

export interface TableProgress {
  /** Primary key of the last copied row; null before the first. */
  readonly lastKey: Key | null;
  readonly rows: number;
}

type ProgressRow = {
  readonly tableName: string;
  readonly source: string;
  /** The key as JSON. */
  readonly lastKey: string | null;
  readonly rowCount: number;
};

type NoteTable = { readonly [TABLE]: ProgressRow };

export async function hasNote(db: Database): Promise<boolean> {
  return hasTable(db, TABLE);
}

export async function readNote(db: Database): Promise<Note | null> {
  if (!(await hasNote(db))) return null;
  const rows = await db.withTables<NoteTable>().selectFrom(TABLE).selectAll().execute();
  const source = rows[0]?.source;
  if (source === undefined) return null;
  return {
    source,
    tables: new Map(
      rows.map(({ tableName, lastKey, rowCount }) => [
        tableName,
        { lastKey: lastKey === null ? null : JSON.parse(lastKey), rows: Number(rowCount) },
      ]),
    ),
  };
}

/**
 * Call it within a transaction.
 *
 * @param isRestart replaces an existing note
 * @throws CopyInterfered if another copy has begun in the meantime
 */
export async function beginNote(trx: Database, { source, tables, isRestart }: NewNote): Promise<void> {
  if (isRestart) await endNote(trx);
  else if (await hasNote(trx)) throw new CopyInterfered();
  await sql`
    create table ${sql.table(TABLE)} (
      "tableName" text primary key,
      "source" text not null,
      "lastKey" text,
      "rowCount" integer not null
    )`
    .execute(trx)
    .catch((error: unknown) => {
      // On PostgreSQL two concurrent copies may both find no note.
      const code = codeOf(error);
      throw code === UNIQUE_VIOLATION || code === DUPLICATE_TABLE ? new CopyInterfered(error) : error;
    });
  const rows = tables.map(({ name }) => ({ tableName: name, source, lastKey: null, rowCount: 0 }));
  await trx.withTables<NoteTable>().insertInto(TABLE).values(rows).execute();
}

interface NewNote {
  readonly source: string;
  readonly tables: readonly TableShape[];
  readonly isRestart: boolean;
}

/** Error codes of PostgreSQL, where two copies can begin together. SQLite runs one write transaction at a time. */
const UNIQUE_VIOLATION = '23505';
const DUPLICATE_TABLE = '42P07';

/**
 * Call it within the transaction that writes the rows.
 *
 * @throws CopyInterfered if another copy has changed the note
 */
export async function advanceNote(
  trx: Database,
  table: string,
  before: TableProgress,
  after: TableProgress,
): Promise<void> {
  const { numUpdatedRows } = await trx
    .withTables<NoteTable>()
    .updateTable(TABLE)
    .set({ lastKey: JSON.stringify(after.lastKey, asNumber), rowCount: after.rows })
    .where('tableName', '=', table)
    .where('rowCount', '=', before.rows)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new CopyInterfered();
}

/** Thrown if another copy writes to the same target. */
export class CopyInterfered extends Error {
  constructor(cause?: unknown) {
    super('Another copy writes into the same database; let it end, or end it and run this again', { cause });
    this.name = 'CopyInterfered';
  }
}

export async function endNote(db: Database): Promise<void> {
  await sql`drop table ${sql.table(TABLE)}`.execute(db);
}

/** Keys are text or small integers. */
function asNumber(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}
