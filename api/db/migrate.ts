/**
 * Migrates the database to the newest schema with Kysely's migrator. Pending migrations run in one transaction with
 * their records, so a crash leaves the old or the new schema. Only one process migrates at a time: SQLite allows one
 * write transaction, and PostgreSQL takes a lock. A database that is newer than the program is refused.
 */
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { forPostgres, hasTable, isPostgres } from './dialect.ts';
import { migrations } from './migrations/index.ts';
import { countMembersWithoutRights, takeOrganizationWrite } from './organization-rights.ts';
import { PostgresKysely } from './postgres-driver.ts';
import { withMigrationLock } from './postgres-start.ts';
import { dropTables } from './removed-tables.ts';
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

/** The database does not have the schema of this version. The message is for the operator. */
export class SchemaDiffers extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SchemaDiffers';
  }
}

const TABLE = 'migrations';

/** Code that runs after the statements of a migration. It may return a sentence for the log. */
const afterwards: Readonly<Record<string, (trx: Database) => Promise<string | null>>> = {
  '011-unique-values': (trx) => fillUniqueValues(trx).then(() => null),
  '026-organization-write': takeOrganizationWrite,
  '029-no-teams': countMembersWithoutRights,
};

/** Gets what operators should know about a migration, after its commit. */
type Tell = (sentence: string) => void;

/**
 * @returns names of the migrations that ran
 * @throws SchemaTooNew if the database has a migration that this program does not know
 */
export async function migrate(db: Database, tell: Tell = () => undefined): Promise<readonly string[]> {
  if (db instanceof PostgresKysely) {
    const own = db.openForMigrations();
    return withMigrationLock(own, (alone) => migrateAlone(alone, tell)).finally(() => own.destroy());
  }
  await adoptOlderHistory(db);
  return migrateAlone(db, tell);
}

async function migrateAlone(db: Database, tell: Tell): Promise<readonly string[]> {
  /** Sentences by migration: a repeated transaction replaces its own. */
  const sentences = new Map<string, readonly string[]>();
  const migrator = new Migrator({
    db,
    migrationTableName: TABLE,
    migrationLockTableName: 'migrationsLock',
    provider: {
      getMigrations: async () => Object.fromEntries(migrations.map((one) => asMigration(one, sentences))),
    },
  });
  const known = new Set(migrations.map(({ name }) => name));
  const unknown = (await appliedNames(db)).filter((name) => !known.has(name));
  if (unknown.length > 0) throw new SchemaTooNew(unknown);
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  for (const sentence of [...sentences.values()].flat()) tell(sentence);
  return results.map(({ migrationName }) => migrationName);
}

function asMigration(
  { name, statements, only, drops = [] }: (typeof migrations)[number],
  sentences: Map<string, readonly string[]>,
): [string, Migration] {
  return [
    name,
    {
      async up(trx) {
        const all = isPostgres(trx)
          ? [...statements.flatMap(forPostgres), ...(only?.postgres ?? [])]
          : [...statements, ...(only?.sqlite ?? [])];
        const dropped = await dropTables(trx, name, drops);
        for (const statement of all) await sql.raw(statement).execute(trx);
        const more = (await afterwards[name]?.(trx)) ?? null;
        sentences.set(
          name,
          [dropped, more].filter((sentence) => sentence !== null),
        );
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

/**
 * Refuses to read a database that has not exactly the schema of this version.
 *
 * @param applied names of its migrations
 * @param what name of the database for messages, such as "the source"
 * @throws SchemaDiffers
 */
export function refuseOtherSchema(applied: readonly string[], what: string): void {
  if (applied.length === 0) throw new SchemaDiffers(`${what} is not a database of the API: it has no tables`);
  const known = migrations.map(({ name }) => name);
  const newer = applied.filter((name) => !known.includes(name));
  if (newer.length > 0)
    throw new SchemaDiffers(
      `${what} was written by a newer version (it has ${newer.join(', ')}); use that version`,
    );
  const missing = known.filter((name) => !applied.includes(name));
  if (missing.length > 0)
    throw new SchemaDiffers(
      `${what} is of an older version (it lacks ${missing.join(', ')}); start the API of this version on it once, stop it, and repeat this`,
    );
}
