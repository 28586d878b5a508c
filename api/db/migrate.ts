/**
 * Brings the database to the newest schema. Each migration runs once, in its own transaction together with the note
 * that it ran, so a crash leaves the schema before it or after it. A database that is newer than the program is refused.
 */
import { type Kysely, sql } from 'kysely';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock } from '#shared/clock.ts';
import { migrations } from './migrations/index.ts';
import type { Database } from './schema.ts';

/** The database was written by a newer version of this program; the message is fit for the operator. */
export class SchemaTooNew extends Error {
  constructor(names: readonly string[]) {
    super(
      `The database was written by a newer version (it has ${names.join(', ')}); start that version instead`,
    );
    this.name = 'SchemaTooNew';
  }
}

interface WithHistory extends Database {
  migrations: { name: string; appliedAt: string };
}

/**
 * @returns the names of the migrations that ran now
 * @throws SchemaTooNew when the database knows a migration that this program does not
 */
export async function migrate(db: Kysely<Database>, clock: Clock): Promise<readonly string[]> {
  const history = db.withTables<Pick<WithHistory, 'migrations'>>();
  await history.schema
    .createTable('migrations')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('appliedAt', 'text', (column) => column.notNull())
    .execute();

  const applied = new Set(
    (await history.selectFrom('migrations').select('name').execute()).map((row) => row.name),
  );
  const unknown = [...applied].filter((name) => !migrations.some((migration) => migration.name === name));
  if (unknown.length > 0) throw new SchemaTooNew(unknown);

  const pending = migrations.filter(({ name }) => !applied.has(name));
  for (const { name, statements } of pending) {
    await history.transaction().execute(async (trx) => {
      for (const statement of statements) await sql.raw(statement).execute(trx);
      await trx
        .insertInto('migrations')
        .values({ name, appliedAt: toTimestamp(clock()) })
        .execute();
    });
  }
  return pending.map(({ name }) => name);
}
