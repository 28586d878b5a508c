/**
 * Opens the database of a test: SQLite, or PostgreSQL if TEST_DATABASE is `postgres`. Tests that need one of the two
 * open it themselves.
 */
import { join } from 'node:path';
import { sql } from 'kysely';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { Database } from '#api/db/schema.ts';
import type { Owner } from './gateway.ts';
import { createPostgresDatabase } from './postgres.ts';
import { temporaryFolder } from './temporary-folder.ts';

export const isOnPostgres = process.env.TEST_DATABASE === 'postgres';

/** Returns the address of a database in memory if possible, for one process. It may have the tables already. */
export async function privateDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }> {
  return isOnPostgres ? createPostgresDatabase() : { url: 'file::memory:', drop: async () => undefined };
}

/** Opens such a database, and drops it with the test. */
export async function openPrivateDatabase(owner: Owner): Promise<Database> {
  const { url, drop } = await privateDatabase();
  const db = openTestDatabase(url);
  owner.teardown(() => db.destroy().then(drop));
  return db;
}

/**
 * Creates a database that several processes can open and that outlives them.
 *
 * @param kind `empty` has no tables; `migrated` may have them already
 * @returns its DATABASE_URL
 */
export async function sharedDatabase(owner: Owner, kind: 'migrated' | 'empty' = 'migrated'): Promise<string> {
  if (!isOnPostgres) return `file:${join(temporaryFolder(owner), 'floodgate.sqlite')}`;
  const { url, drop } = await createPostgresDatabase(kind);
  owner.teardown(drop);
  return url;
}

/** Opens a connection for the test's own queries. */
export function openTestDatabase(url: string): Database {
  return openDatabase(parseDatabaseUrl(url, '/'));
}

/** Lists rows whose foreign key has no target. PostgreSQL allows none. */
export async function brokenReferences(db: Database): Promise<readonly unknown[]> {
  return isOnPostgres ? [] : (await sql`pragma foreign_key_check`.execute(db)).rows;
}
