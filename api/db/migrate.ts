/**
 * Migrates the database to the newest schema with Kysely's migrator. Pending migrations run in one transaction with
 * their records, so a crash leaves the old or the new schema. Only one process migrates at a time: SQLite allows one
 * write transaction, and PostgreSQL takes a lock. A database that is newer than the program is refused.
 */
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { forPostgres, hasTable, isPostgres } from './dialect.ts';
import { LAST_OF_0_1_0, migrations, START } from './migrations/index.ts';
import { PostgresKysely } from './postgres-driver.ts';
import { withMigrationLock } from './postgres-start.ts';
import type { Database } from './schema.ts';

/** A newer version of this program has migrated the database. The message is for the operator. */
export class SchemaTooNew extends Error {
  constructor(names: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${names.join(', ')}); start that version instead`,
    );
    this.name = 'SchemaTooNew';
  }
}

/** The database does not have the schema of this version. The message is for the operator. */
export class SchemaDiffers extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaDiffers';
  }
}

/** An unreleased version has written the database. The message is for the operator. */
export class SchemaTooOld extends Error {
  constructor(last: string) {
    super(
      `The database was written by a version before 0.1.0 (its last migration is ${last}); start version 0.1.0 on it once (git checkout 7721f10f), stop that, and then start this version`,
    );
    this.name = 'SchemaTooOld';
  }
}

const TABLE = 'migrations';

/**
 * @returns names of the migrations that ran
 * @throws SchemaTooNew if the database has a migration that this program does not know, SchemaTooOld
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  if (db instanceof PostgresKysely) {
    const own = db.openForMigrations();
    return withMigrationLock(own, migrateAlone).finally(() => own.destroy());
  }
  return migrateAlone(db);
}

async function migrateAlone(db: Database): Promise<readonly string[]> {
  await db.transaction().execute(adoptStart);
  const unknown = (await appliedNames(db)).filter((name) => !knownNames.includes(name));
  if (unknown.length > 0) throw new SchemaTooNew(unknown);
  const migrator = new Migrator({
    db,
    migrationTableName: TABLE,
    migrationLockTableName: 'migrationsLock',
    provider: { getMigrations: async () => Object.fromEntries(migrations.map(asMigration)) },
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}

const knownNames = migrations.map(({ name }) => name);

function asMigration({ name, statements, only }: (typeof migrations)[number]): [string, Migration] {
  return [
    name,
    {
      async up(trx) {
        const all = isPostgres(trx)
          ? [...statements.map(forPostgres), ...(only?.postgres ?? [])]
          : [...statements, ...(only?.sqlite ?? [])];
        for (const statement of all) await sql.raw(statement).execute(trx);
      },
    },
  ];
}

/** Writes the one start in place of the steps of 0.1.0 into the history of its databases, which have that schema. */
async function adoptStart(trx: Database): Promise<void> {
  const steps = (await appliedNames(trx)).filter((name) => name < START);
  const last = steps.at(-1);
  if (last === undefined) return;
  if (last !== LAST_OF_0_1_0) throw new SchemaTooOld(last);
  const history = sql.table(TABLE);
  await sql`update ${history} set "name" = ${START} where "name" = ${last}`.execute(trx);
  await sql`delete from ${history} where "name" < ${START}`.execute(trx);
}

/** Names of the applied migrations, oldest first. */
export async function appliedNames(db: Database): Promise<readonly string[]> {
  if (!(await hasTable(db, TABLE))) return [];
  const { rows } = await sql<{
    name: string;
  }>`select "name" from ${sql.table(TABLE)} order by "name"`.execute(db);
  return rows.map(({ name }) => name);
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
  const newer = applied.filter((name) => name > START && !knownNames.includes(name));
  if (newer.length > 0)
    throw new SchemaDiffers(
      `${what} was written by a newer version (it has ${newer.join(', ')}); use that version`,
    );
  const missing = knownNames.filter((name) => !applied.includes(name));
  if (missing.length > 0)
    throw new SchemaDiffers(
      `${what} is of an older version (it lacks ${missing.join(', ')}); start the API of this version on it once, stop it, and repeat this`,
    );
}
