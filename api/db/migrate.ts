/**
 * Migrates the database to the newest schema with Kysely's migrator. Pending migrations run in one transaction with
 * their records, so a crash leaves the old or the new schema. Only one process migrates at a time: SQLite allows one
 * write transaction, and PostgreSQL takes a lock. A database that is newer than the program is refused.
 */
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { forPostgres, hasTable, isPostgres } from './dialect.ts';
import { migrations } from './migrations/index.ts';
import { PostgresKysely } from './postgres-driver.ts';
import { withMigrationLock } from './postgres-start.ts';
import type { Database } from './schema.ts';
import { fillUniqueValues } from './unique-values.ts';

/** A newer version of this program has migrated the database. The message is for the operator. */
export class SchemaTooNew extends Error {
  constructor(names: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${names.join(', ')}); start that version instead`,
    );
    this.name = 'SchemaTooNew';
  }
}

const TABLE = 'migrations';

/** Code that runs after the statements of a migration. */
const afterwards: Readonly<Record<string, (trx: Database) => Promise<void>>> = {
  '011-unique-values': fillUniqueValues,
};

/**
 * @returns names of the migrations that ran
 * @throws SchemaTooNew if the database has a migration that this program does not know
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  if (db instanceof PostgresKysely) {
    const own = db.openForMigrations();
    return withMigrationLock(own, migrateAlone).finally(() => own.destroy());
  }
  await adoptOlderHistory(db);
  return migrateAlone(db);
}

async function migrateAlone(db: Database): Promise<readonly string[]> {
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

/** Converts the table of the migrator in older databases, which has another column for the time. */
async function adoptOlderHistory(db: Database): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const columns = await sql<{ name: string }>`select name from pragma_table_info(${TABLE})`.execute(trx);
    if (!columns.rows.some(({ name }) => name === 'appliedAt')) return;
    await sql`alter table ${sql.table(TABLE)} rename column "appliedAt" to "timestamp"`.execute(trx);
  });
}

/** Names of the applied migrations, oldest first. */
export async function appliedNames(db: Database): Promise<readonly string[]> {
  if (!(await hasTable(db, TABLE))) return [];
  const { rows } = await sql<{
    name: string;
  }>`select "name" from ${sql.table(TABLE)} order by "name"`.execute(db);
  return rows.map(({ name }) => name);
}
