/**
 * A SQLite file is filled without its indexes, and gets them once all rows are there. Ids are random, so an index would have
 * nearly all of its pages written anew with each slice; made at the end, each page is written once. PostgreSQL gathers such
 * writes until its next checkpoint.
 */
import { type Kysely, sql } from 'kysely';
import { withFault } from '../faults.ts';
import type { Database } from '../schema.ts';

/** One that has a statement of its own; those of primary keys and unique columns belong to their tables. */
export interface Index {
  readonly name: string;
  /** `create index …` */
  readonly statement: string;
}

/** @param db of SQLite */
export async function readIndexes(db: Kysely<Database>): Promise<readonly Index[]> {
  const { rows } = await sql<Index>`
    select "name", "sql" as "statement" from sqlite_master where "type" = 'index' and "sql" is not null order by "name"`.execute(
    db,
  );
  return rows;
}

/** @param db of SQLite; while indexes are missing, no API may start on it */
export async function dropIndexes(db: Kysely<Database>): Promise<void> {
  for (const { name } of await readIndexes(db)) await sql`drop index ${sql.table(name)}`.execute(db);
}

/**
 * Makes those that are missing, one after the other: what is cut off goes on with the next one.
 *
 * @param db of SQLite
 * @throws the error that `refused` makes of what the rows do not allow
 */
export async function makeIndexes(
  db: Kysely<Database>,
  indexes: readonly Index[],
  refused: (index: Index, reason: Error) => Error,
): Promise<void> {
  for (const index of indexes) {
    await db.transaction().execute(async (trx) => {
      // Looked for in the transaction: another copy may be as far.
      if ((await readIndexes(trx)).some(({ name }) => name === index.name)) return;
      await sql
        .raw(index.statement)
        .execute(trx)
        .catch((error: unknown) => {
          const isRefusal =
            error instanceof Error && 'code' in error && /^SQLITE_CONSTRAINT/.test(String(error.code));
          throw isRefusal && withFault(error) === error ? refused(index, error) : error;
        });
    });
  }
}
