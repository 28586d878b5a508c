/** A mark in the target of a copy, from its beginning to its end. With it the API does not start on a partial copy. */
import { sql } from 'kysely';
import { hasTable } from '../dialect.ts';
import type { Database } from '../schema.ts';

const TABLE = 'copyUnfinished';
/** The mark of versions that could resume a copy. */
const OLDER_TABLE = 'copyProgress';

/** The database is the target of an unfinished copy. The message is for the operator. */
export class CopyUnfinished extends Error {
  constructor() {
    super(
      'DATABASE_URL: a copy into this database has not ended; run the same "db copy" again, or name another database',
    );
    this.name = 'CopyUnfinished';
  }
}

export async function refuseUnfinishedCopy(db: Database): Promise<void> {
  if (await isUnfinished(db)) throw new CopyUnfinished();
}

export async function isUnfinished(db: Database): Promise<boolean> {
  return (await hasTable(db, TABLE)) || (await hasTable(db, OLDER_TABLE));
}

export async function markUnfinished(db: Database): Promise<void> {
  await sql`create table if not exists ${sql.table(TABLE)} ("startedAt" text)`.execute(db);
}

export async function markFinished(db: Database): Promise<void> {
  await sql`drop table if exists ${sql.table(OLDER_TABLE)}, ${sql.table(TABLE)}`.execute(db);
}
