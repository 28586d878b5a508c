/**
 * Brings the database to the newest schema, with Kysely's migrator. Missing migrations run in one transaction with their
 * records, so a crash leaves the old or the new schema, and one process at a time runs them.
 */
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable, reasonOf } from './faults.ts';
import { createFirstRelease } from './migrations/001-first-release.ts';
import type { Database } from './schema.ts';

/** All migrations. They run in the order of their names. Never edit a released one; add the next one. */
export const migrations: Readonly<Record<string, Migration>> = {
  '001-first-release': { up: createFirstRelease },
};

/** The database does not have a schema that this version can use. The message is for the operator. */
export class SchemaDiffers extends Error {
  constructor(cause: unknown) {
    super(
      `DATABASE_URL: the database is of another version of the API (${reasonOf(cause)}); start that version, or give a new file or an empty database`,
    );
    this.name = 'SchemaDiffers';
  }
}

/**
 * @returns names of the migrations that ran
 * @throws SchemaDiffers if the database has other migrations, or tables of the same names
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  const migrator = new Migrator({
    db,
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrationsLock',
    provider: { getMigrations: async () => migrations },
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error === undefined) return results.map(({ migrationName }) => migrationName);
  const isTrouble = [DatabaseBusy, DatabaseFault, DatabaseUnavailable].some((kind) => error instanceof kind);
  throw isTrouble ? error : new SchemaDiffers(error);
}

/** Refuses to read a database that has not exactly the schema of this version. @throws SchemaDiffers */
export async function refuseOtherSchema(db: Database): Promise<void> {
  const query = sql<{ name: string }>`select "name" from "migrations" order by "name"`;
  const { rows } = await query.execute(db).catch((error: unknown) => {
    throw error instanceof DatabaseBusy || error instanceof DatabaseFault ? error : new SchemaDiffers(error);
  });
  const applied = rows.map(({ name }) => name).join(', ');
  if (applied !== Object.keys(migrations).join(', ')) throw new SchemaDiffers(`it has ${applied}`);
}
