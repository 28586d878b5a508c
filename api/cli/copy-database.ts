/**
 * `db copy`: moves a SQLite file into an empty PostgreSQL database, in one transaction that commits only if every table
 * has as many rows as in the source. No API may run on either of them: the source is opened alone, and the tables of the
 * target are locked.
 */
import { sql } from 'kysely';
import { awaitDatabase } from '#api/db/database.ts';
import { codeOf } from '#api/db/faults.ts';
import { migrate, refuseOtherSchema } from '#api/db/migrate.ts';
import { PostgresKysely } from '#api/db/postgres-driver.ts';
import type { Database } from '#api/db/schema.ts';
import { openAlone, type SqliteFile } from '#api/db/sqlite-snapshot.ts';
import type { Given } from '#shared/cli/command.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { type CommandContext, command, DATABASE, databaseAt } from './command.ts';

type Row = Readonly<Record<string, string | number | bigint | null>>;

/** The migrator's own tables. */
const NOT_COPIED = ['migrations', 'migrationsLock'];
/** The number of rows in memory. The API bounds the size of each. */
const ROWS_AT_ONCE = 64;

const OPTIONS = {
  from: { ...DATABASE, describe: 'The source, file:PATH' },
  to: { isRequired: true, describe: 'The target, postgres://…' },
} as const;

export const COPY_DATABASE = command({
  describe: 'Copies all rows of a SQLite database into an empty PostgreSQL database',
  options: OPTIONS,
  examples: [
    [
      '$0 db copy --from file:./data/floodgate.sqlite --to postgres://floodgate@db.example.com/floodgate',
      'Stop the API first',
    ],
  ],
  run: copy,
});

async function copy({ from, to, json }: Given<typeof OPTIONS>, context: CommandContext): Promise<ExitCode> {
  const [file, server] = [databaseAt('--from', from, context), databaseAt('--to', to, context)];
  if (file.kind !== 'file')
    throw new CommandError('--from: give the SQLite file to copy, as file:PATH', EXIT.usage);
  if (server.kind !== 'postgres')
    throw new CommandError('--to: give an empty PostgreSQL database, as postgres://…', EXIT.usage);
  const source = openAlone(file.path);
  const target = new PostgresKysely({ ...server, applicationName: 'floodgate db' }, { poolSize: 1 });
  try {
    const all = namesIn(source, 'select "name" from sqlite_master where "type" = \'table\' order by "rowid"');
    const isOurs = all.includes('migrations');
    refuseOtherSchema(isOurs ? namesIn(source, 'select "name" from "migrations"') : [], 'the source');
    const tables = all.filter((table) => !table.startsWith('sqlite_') && !NOT_COPIED.includes(table));
    await awaitDatabase(target, server, 0, () => undefined);
    await migrate(target);
    const copied = await target.transaction().execute((trx) => copyTables(source, trx, tables));
    if (json) context.terminal.json(Object.fromEntries(copied));
    else context.terminal.table(['table', 'rows copied'], copied);
    return EXIT.ok;
  } finally {
    source.close();
    await target.destroy();
  }
}

function namesIn(source: SqliteFile, query: string): readonly string[] {
  return source.prepare<[], string>(query).pluck().all();
}

/** @param tables in the order of their creation: each follows all tables that it refers to */
async function copyTables(source: SqliteFile, trx: Database, tables: readonly string[]) {
  const list = sql.join(tables.map((table) => sql.table(table)));
  await sql`lock table ${list} in access exclusive mode`.execute(trx);
  for (const table of tables)
    if ((await countIn(trx, table)) > 0)
      throw new CommandError('the target is not empty; name an empty database', EXIT.no);
  for (const table of tables) await copyTable(source, trx, table);
  const copied: [table: string, rows: number][] = [];
  for (const table of tables) {
    const rows = Number(source.prepare(`select count(*) from "${table}"`).pluck().get());
    const found = await countIn(trx, table);
    if (found !== rows)
      throw new CommandError(`${table} has ${rows} rows in the source, but ${found} in the target`, EXIT.no);
    copied.push([table, rows]);
  }
  return copied;
}

async function copyTable(source: SqliteFile, trx: Database, table: string): Promise<void> {
  // The rows that triggers write come with the source.
  await sql`alter table ${sql.table(table)} disable trigger user`.execute(trx);
  let rows: Row[] = [];
  for (const row of source.prepare<[], Row>(`select * from "${table}"`).iterate()) {
    if (rows.push(row) < ROWS_AT_ONCE) continue;
    await insert(trx, table, rows);
    rows = [];
  }
  await insert(trx, table, rows);
  await sql`alter table ${sql.table(table)} enable trigger user`.execute(trx);
}

async function insert(trx: Database, table: string, rows: readonly Row[]): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const columns = sql.join(Object.keys(first).map((column) => sql.ref(column)));
  const values = sql.join(rows.map((row) => sql`(${sql.join(Object.values(row))})`));
  const inserted = sql`insert into ${sql.table(table)} (${columns}) values ${values}`.execute(trx);
  await inserted.catch((error: unknown) => {
    // A value that PostgreSQL cannot store, or a reference to a row that does not exist.
    if (!/^2[23]/.test(codeOf(error))) throw error;
    throw new CommandError(`the target refuses rows of ${table}: ${(error as Error).message}`, EXIT.no);
  });
}

async function countIn(trx: Database, table: string): Promise<number> {
  const { rows } = await sql<{ rows: number }>`select count(*) as "rows" from ${sql.table(table)}`.execute(
    trx,
  );
  return Number(rows[0]?.rows);
}
