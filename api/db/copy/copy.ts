/**
 * Copies all rows of a SQLite file into an empty PostgreSQL database. Each table is one transaction in the target, which
 * commits only if it has as many rows as the source. A copy that did not end begins again from the start: the target
 * carries a mark, with which the API refuses to start on it, and the next copy empties its tables.
 */
import { sql } from 'kysely';
import { awaitDatabase } from '../database.ts';
import { codeOf } from '../faults.ts';
import { migrate, refuseOtherSchema } from '../migrate.ts';
import type { PostgresLocation } from '../postgres-address.ts';
import { PostgresKysely } from '../postgres-driver.ts';
import type { Database } from '../schema.ts';
import { openAlone, type SqliteFile } from '../sqlite-snapshot.ts';
import { countRows, type Row, readBatches, readTables, type SourceTable } from './source.ts';
import { isUnfinished, markFinished, markUnfinished } from './unfinished.ts';

/** The copy is not possible. The message is for the operator. */
export class CopyRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'CopyRefused';
  }
}

interface CopiedTable {
  readonly table: string;
  readonly rows: number;
}

interface CopyOptions {
  /** Absolute path of the SQLite file. */
  readonly path: string;
  readonly to: PostgresLocation;
  /** Called with the number of rows so far, and of all rows. */
  readonly onRows: (done: number, total: number) => void;
}

/** @throws CopyRefused, SchemaTooNew, DatabaseUnavailable, DatabaseInUse */
export async function copyDatabase({ path, to, onRows }: CopyOptions): Promise<readonly CopiedTable[]> {
  const source = openAlone(path);
  // Reading a large table takes longer than a request may. The one connection keeps the lock.
  const target = new PostgresKysely(
    { ...to, applicationName: 'floodgate db' },
    { statementTimeoutMs: 0, poolSize: 1, synchronous: 'normal' },
  );
  try {
    refuseOtherSchema(migrationsOf(source), 'the source');
    await awaitDatabase(target, to, 0, () => undefined);
    return await target.connection().execute(async (alone) => {
      await refuseSecondCopy(alone);
      await refuseData(alone);
      // The mark comes before the tables, so that the next copy knows that they are its own.
      await markUnfinished(alone);
      await migrate(target);
      const copied = await copyTables(source, alone, onRows);
      await markFinished(alone);
      return copied;
    });
  } finally {
    source.close();
    await target.destroy();
  }
}

function migrationsOf(source: SqliteFile): readonly string[] {
  const names = `select "name" from sqlite_master where "type" = 'table' and "name" = 'migrations'`;
  if (source.prepare(names).get() === undefined) return [];
  return source.prepare<[], string>('select "name" from "migrations" order by "name"').pluck().all();
}

async function refuseData(target: Database): Promise<void> {
  if (!(await isUnfinished(target)) && (await tableNames(target)).size > 0)
    throw new CopyRefused('the target is not empty; name an empty database');
}

async function tableNames(target: Database): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select "tablename" as "name" from pg_tables where "schemaname" = current_schema()`.execute(target);
  return new Set(rows.map(({ name }) => name));
}

/** Tables of the migrator and of communication between processes, which triggers in the target fill. */
const NOT_COPIED: ReadonlySet<string> = new Set(['migrations', 'migrationsLock', 'stateChanges']);

async function copyTables(
  source: SqliteFile,
  target: Database,
  onRows: CopyOptions['onRows'],
): Promise<readonly CopiedTable[]> {
  const known = await tableNames(target);
  const tables = readTables(source)
    .filter(({ name }) => known.has(name) && !NOT_COPIED.has(name))
    .map((table) => ({ ...table, rows: countRows(source, table) }));
  // Rows that migrations have inserted come with the source, and an earlier copy may have left some.
  await sql`truncate table ${sql.join(tables.map(({ name }) => sql.table(name)))}`.execute(target);
  const total = tables.reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  for (const table of tables) {
    await target.transaction().execute(async (trx) => {
      // All that triggers write comes with the source.
      await sql`alter table ${sql.table(table.name)} disable trigger user`.execute(trx);
      for (const rows of readBatches(source, table)) {
        await insert(trx, table, rows);
        done += rows.length;
        onRows(done, total);
      }
      await refuseOtherCount(trx, table);
      await sql`alter table ${sql.table(table.name)} enable trigger user`.execute(trx);
    });
  }
  return tables.map(({ name, rows }) => ({ table: name, rows }));
}

/** An arbitrary number that identifies the lock of a copy. It ends with the connection, so a crash releases it. */
const LOCK = 5_174_220_968_411_027;

async function refuseSecondCopy(target: Database): Promise<void> {
  const { rows } = await sql<{ isOurs: number }>`
    select pg_try_advisory_lock(${sql.lit(LOCK)}) as "isOurs"`.execute(target);
  if (rows[0]?.isOurs !== 1)
    throw new CopyRefused('another copy writes into the same database; wait for its end, or end it');
}

async function refuseOtherCount(
  trx: Database,
  { name, rows }: SourceTable & { readonly rows: number },
): Promise<void> {
  const found = await sql<{ count: number }>`select count(*) as "count" from ${sql.table(name)}`.execute(trx);
  const count = found.rows[0]?.count;
  if (count !== rows)
    throw new CopyRefused(`${name} has ${rows} rows in the source, but ${count} in the target; copy again`);
}

async function insert(trx: Database, table: SourceTable, rows: readonly Row[]): Promise<void> {
  const columns = sql.join(table.columns.map((column) => sql.ref(column)));
  let size = 64;
  for (let start = 0; start < rows.length; start += size) {
    while (size > rows.length - start) size /= 2;
    const values = rows
      .slice(start, start + size)
      .map((row) => sql`(${sql.join(table.columns.map((column) => row[column] ?? null))})`);
    await sql`insert into ${sql.table(table.name)} (${columns}) values ${sql.join(values)}`
      .execute(trx)
      .catch((error: unknown) => {
        throw asRefusal(table, rows.slice(start, start + size), error);
      });
  }
}

/** Leaves faults of the database unchanged, and names the rows whose values it refuses. */
function asRefusal({ name, key }: SourceTable, rows: readonly Row[], error: unknown): unknown {
  if (!/^(2[23]|54000)/.test(codeOf(error))) return error;
  const [first, last] = [rows[0], rows.at(-1)].map((row) => key.map((column) => row?.[column]).join('/'));
  return new CopyRefused(
    `the target refuses rows of ${name}, from ${first} to ${last}: ${(error as Error).message}`,
    error,
  );
}
