/**
 * A SQLite file is filled without indexes, which are created at the end. Ids are random, so each slice would rewrite
 * most pages of an index; created at the end, each page is written once. PostgreSQL needs no such help, because it
 * combines these writes until the next checkpoint.
 */
import { sql } from 'kysely';
import { codeOf, withFault } from '../faults.ts';
import type { Database } from '../schema.ts';

/** An index with a `create index` statement. Those of primary keys and unique columns belong to their tables. */
export interface Index {
  readonly name: string;
  /** `create index …` */
  readonly statement: string;
}

export async function readIndexes(db: Database): Promise<readonly Index[]> {
  const { rows } = await sql<Index>`
    select "name", "sql" as "statement" from sqlite_master where "type" = 'index' and "sql" is not null order by "name"`.execute(
    db,
  );
  return rows;
}

/** @param db SQLite. The API must not start while indexes are missing */
export async function dropIndexes(db: Database): Promise<void> {
  for (const { name } of await readIndexes(db)) await sql`drop index ${sql.table(name)}`.execute(db);
}

/**
 * Creates missing indexes one by one, so that an interrupted run can be resumed.
 *
 * @param db SQLite
 * @throws result of `refused` if the rows violate an index
 */
export async function makeIndexes(
  db: Database,
  indexes: readonly Index[],
  refused: (index: Index, reason: Error) => Error,
): Promise<void> {
  for (const index of indexes) {
    await db.transaction().execute(async (trx) => {
      // Check again within the transaction, because another copy may have created the index.
      if ((await readIndexes(trx)).some(({ name }) => name === index.name)) return;
      await sql
        .raw(index.statement)
        .execute(trx)
        .catch((error: unknown) => {
          const isRefusal = error instanceof Error && codeOf(error).startsWith('SQLITE_CONSTRAINT');
          throw isRefusal && withFault(error) === error ? refused(index, error) : error;
        });
    });
  }
}
