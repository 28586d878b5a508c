/**
 * Brings the database to the newest schema, with Kysely's migrator. What is pending runs in one transaction together with
 * the note that it ran, so a crash leaves the schema before it or after it. One process at a time migrates: SQLite lets one
 * begin a transaction, and PostgreSQL keeps a lock for us. Of two first starts the second finds nothing to do. A database
 * that is newer than the program is refused.
 */
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { forPostgres, hasTable, isPostgres } from './dialect.ts';
import { migrations } from './migrations/index.ts';
import { PostgresKysely } from './postgres-driver.ts';
import { withMigrationLock } from './postgres-start.ts';
import type { Database } from './schema.ts';
import { fillUniqueValues } from './unique-values.ts';

/** The database was written by a newer version of this program; the message is fit for the operator. */
export class SchemaTooNew extends Error {
  constructor(names: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${names.join(', ')}); start that version instead`,
    );
    this.name = 'SchemaTooNew';
  }
}

const TABLE = 'migrations';

/** What a migration does that SQL does not say, after its statements. */
const afterwards: Readonly<Record<string, (trx: Kysely<Database>) => Promise<void>>> = {
  '011-unique-values': fillUniqueValues,
};

/**
 * @returns the names of the migrations that ran now
 * @throws SchemaTooNew when the database knows a migration that this program does not
 */
export async function migrate(db: Kysely<Database>): Promise<readonly string[]> {
  if (db instanceof PostgresKysely) {
    const own = db.openForMigrations();
    return withMigrationLock(own, migrateAlone).finally(() => own.destroy());
  }
  await adoptOlderHistory(db);
  return migrateAlone(db);
}

async function migrateAlone(db: Kysely<Database>): Promise<readonly string[]> {
  const migrator = new Migrator({
    db,
    migrationTableName: TABLE,
    migrationLockTableName: 'migrationsLock',
    provider: { getMigrations: async () => Object.fromEntries(migrations.map(asMigration)) },
  });
  const known = new Set(migrations.map(({ name }) => name));
  const unknown = (await appliedNames(db)).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new SchemaTooNew(unknown);
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}

function asMigration({ name, statements, only }: (typeof migrations)[number]): [string, Migration] {
  return [
    name,
    {
      async up(trx) {
        const all = isPostgres(trx)
          ? [...statements.flatMap(forPostgres), ...(only?.postgres ?? [])]
          : [...statements, ...(only?.sqlite ?? [])];
        for (const statement of all) await sql.raw(statement).execute(trx);
        await afterwards[name]?.(trx);
      },
    },
  ];
}

/** Files from before the migrator have the same table with another name for the time. */
async function adoptOlderHistory(db: Kysely<Database>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const columns = await sql<{ name: string }>`select name from pragma_table_info(${TABLE})`.execute(trx);
    if (!columns.rows.some(({ name }) => name === 'appliedAt')) return;
    await sql`alter table ${sql.table(TABLE)} rename column "appliedAt" to "timestamp"`.execute(trx);
  });
}

/** Names of the migrations that ran on it, the oldest first. */
export async function appliedNames(db: Kysely<Database>): Promise<readonly string[]> {
  if (!(await hasTable(db, TABLE))) return [];
  const { rows } = await sql<{
    name: string;
  }>`select "name" from ${sql.table(TABLE)} order by "name"`.execute(db);
  return rows.map(({ name }) => name);
}
