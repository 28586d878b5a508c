/**
 * `db copy`: moves a SQLite file into an empty PostgreSQL database, in one transaction. No other process may use the source
 * meanwhile, which the locks of SQLite ensure.
 */
import { sql } from 'kysely';
import { countRows } from '#api/db/count.ts';
import { awaitDatabase, openDatabase } from '#api/db/database.ts';
import { codeOf, DatabaseBusy } from '#api/db/faults.ts';
import { migrate } from '#api/db/migrate.ts';
import { accounts } from '#api/db/migrations/accounts.ts';
import { events } from '#api/db/migrations/events.ts';
import { surveys } from '#api/db/migrations/surveys.ts';
import type { Database, Tables } from '#api/db/schema.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { command, DATABASE, databaseAt, withDatabase } from './command.ts';

/** Each table refers only to earlier ones. */
const TABLES = Object.keys({ ...accounts, ...surveys, ...events }) as (keyof Tables)[];
/** The number of rows in memory. The API bounds the size of each. */
const ROWS_AT_ONCE = 64;

export const COPY_DATABASE = command({
  describe: 'Copies all rows of a SQLite database into an empty PostgreSQL database',
  options: {
    from: { ...DATABASE, describe: 'The source, file:PATH' },
    to: { isRequired: true, describe: 'The target, postgres://…' },
  },
  examples: [
    [
      '$0 db copy --from file:./data/floodgate.sqlite --to postgres://floodgate@db.example.com/floodgate',
      'Stop the API first',
    ],
  ],
  async run({ from, to, json }, context) {
    const [file, server] = [databaseAt('--from', from, context), databaseAt('--to', to, context)];
    if (file.kind !== 'file' || server.kind !== 'postgres')
      throw new CommandError('copy from a SQLite file, file:PATH, to a server, postgres://…', EXIT.usage);
    const copied = await withDatabase(file, async (source) => {
      // Only the last connection to a file may leave the mode of the API, and no API can start before the next commit.
      await sql`pragma journal_mode = delete`.execute(source).catch((error: unknown) => {
        if (!(error instanceof DatabaseBusy)) throw error;
        throw new CommandError(`${file.path} is in use, most likely by the API; stop it first`, EXIT.no);
      });
      const target = openDatabase(server);
      try {
        await awaitDatabase(target, 0);
        await migrate(target);
        return await source
          .transaction()
          .execute((alone) => target.transaction().execute((trx) => copyTables(alone, trx)));
      } finally {
        await target.destroy();
      }
    });
    if (json) context.terminal.json(Object.fromEntries(copied));
    else context.terminal.table(['table', 'rows copied'], copied);
    return EXIT.ok;
  },
});

async function copyTables(source: Database, target: Database) {
  const copied: [table: string, rows: number][] = [];
  for (const table of TABLES) {
    if ((await countIn(target, table)) > 0)
      throw new CommandError('the target is not empty; name an empty database', EXIT.no);
    let rows: object[] = [];
    for await (const row of source.selectFrom(table).selectAll().stream()) {
      if (rows.push(row) < ROWS_AT_ONCE) continue;
      await insert(target, table, rows);
      rows = [];
    }
    if (rows.length > 0) await insert(target, table, rows);
    const [wanted, found] = [await countIn(source, table), await countIn(target, table)];
    if (found !== wanted)
      throw new CommandError(
        `${table} has ${wanted} rows in the source, and ${found} in the target`,
        EXIT.no,
      );
    copied.push([table, found]);
  }
  return copied;
}

async function insert(target: Database, table: keyof Tables, rows: readonly object[]): Promise<void> {
  try {
    await target
      .insertInto(table)
      .values(rows as never)
      .execute();
  } catch (error) {
    // A value that PostgreSQL cannot store, or a reference to a row that does not exist.
    if (!/^2[23]/.test(codeOf(error))) throw error;
    throw new CommandError(`the target refuses rows of ${table}: ${(error as Error).message}`, EXIT.no);
  }
}

function countIn(db: Database, table: keyof Tables): Promise<number> {
  return countRows(db.selectFrom(table));
}
