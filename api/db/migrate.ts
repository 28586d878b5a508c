/**
 * Migrates the database to the newest schema with Kysely's migrator. Pending migrations run in one transaction with
 * their records, so a crash leaves the old or the new schema. Only one process migrates at a time: SQLite allows one
 * write transaction, and on PostgreSQL the migrator takes a lock. A database that the program cannot migrate is refused.
 */
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { hasTable, isPostgres } from './dialect.ts';
import { FIRST, migrations } from './migrations/index.ts';
import { PostgresKysely } from './postgres-driver.ts';
import { migrationAdvice } from './postgres-start.ts';
import type { Database } from './schema.ts';

/** The database does not have a schema that this version can use. The message is for the operator. */
export class SchemaDiffers extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaDiffers';
  }
}

const TABLE = 'migrations';

/**
 * @returns names of the migrations that ran
 * @throws SchemaDiffers if the database is of a newer version, or of a time before the first release
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  if (!(db instanceof PostgresKysely)) return migrateAlone(db);
  const own = db.openForMigrations();
  try {
    return await migrateAlone(own);
  } catch (error) {
    throw migrationAdvice(error);
  } finally {
    await own.destroy();
  }
}

async function migrateAlone(db: Database): Promise<readonly string[]> {
  refuseUnknown(await appliedNames(db), 'DATABASE_URL: the database');
  const migrator = new Migrator({
    db,
    migrationTableName: TABLE,
    migrationLockTableName: 'migrationsLock',
    provider: {
      getMigrations: async () => Object.fromEntries(migrations.map(asMigration)),
    },
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}

function asMigration({ name, up }: (typeof migrations)[number]): [string, Migration] {
  const run = (trx: Database) =>
    up({
      schema: trx.schema,
      isPostgres: isPostgres(trx),
      run: (statement) => sql.raw(statement).execute(trx),
    });
  return [name, { up: run }];
}

/** Names of the applied migrations, oldest first. */
export async function appliedNames(db: Database): Promise<readonly string[]> {
  if (!(await hasTable(db, TABLE))) return [];
  const { rows } = await sql<{
    name: string;
  }>`select "name" from ${sql.table(TABLE)} order by "name"`.execute(db);
  return rows.map(({ name }) => name);
}

function refuseUnknown(applied: readonly string[], what: string): void {
  if (applied.length > 0 && !applied.includes(FIRST))
    throw new SchemaDiffers(
      `${what} is of a time before the first release, and cannot be migrated; start with a new file or an empty database`,
    );
  const known = migrations.map(({ name }) => name);
  const newer = applied.filter((name) => !known.includes(name));
  if (newer.length > 0)
    throw new SchemaDiffers(
      `${what} was written by a newer version (it has ${newer.join(', ')}); start that version instead`,
    );
}

/**
 * Refuses to read a database that has not exactly the schema of this version.
 *
 * @param applied names of its migrations
 * @param what name of the database for messages, such as "the source"
 * @throws SchemaDiffers
 */
export function refuseOtherSchema(applied: readonly string[], what: string): void {
  if (applied.length === 0) throw new SchemaDiffers(`${what} is not a database of the API: it has no tables`);
  refuseUnknown(applied, what);
  const missing = migrations.filter(({ name }) => !applied.includes(name)).map(({ name }) => name);
  if (missing.length > 0)
    throw new SchemaDiffers(
      `${what} is of an older version (it lacks ${missing.join(', ')}); start the API of this version on it once, stop it, and repeat this`,
    );
}
