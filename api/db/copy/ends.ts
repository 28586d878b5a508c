/** Opens, checks and closes the source and the target of a copy. */
import { type ControlledTransaction, sql } from 'kysely';
import { awaitDatabase, openDatabase } from '../database.ts';
import { DatabaseBusy } from '../faults.ts';
import type { DatabaseLocation } from '../location.ts';
import { appliedNames, migrate } from '../migrate.ts';
import { beginPostgresSnapshot } from '../postgres-snapshot.ts';
import type { Database, Tables } from '../schema.ts';
import { openSqliteSnapshot } from '../sqlite-snapshot.ts';
import { CopyRefused } from './copy.ts';
import { hasNote } from './note.ts';
import type { Shape } from './shape.ts';

export interface End {
  readonly db: Database;
  close(): Promise<void>;
}

interface Target extends End {
  /** Whether the database cannot store the character NUL. */
  readonly refusesNul: boolean;
  /** Whether the database is filled without indexes, which is faster. */
  readonly isIndexedLast: boolean;
}

interface SnapshotOptions {
  readonly shape: Shape;
  readonly isExclusive: boolean;
  /** Name for messages, such as "the source". */
  readonly what: string;
}

/**
 * Opens a consistent snapshot of a database. It must have the schema of this version.
 *
 * @throws CopyRefused, DatabaseUnavailable, DatabaseInUse
 */
export async function openSnapshot(location: DatabaseLocation, options: SnapshotOptions): Promise<End> {
  switch (location.kind) {
    case 'memory':
      throw new CopyRefused('file::memory: ends with its process; name a file');
    case 'file': {
      const db = openSqliteSnapshot(location.path, options.isExclusive);
      return opening(db, async () => {
        await refuseOtherSchema(db, options);
        return { db, close: () => db.destroy() };
      });
    }
    case 'postgres': {
      const db = openDatabase(named(location), WITHOUT_HURRY);
      return opening(db, async () => {
        await awaitDatabase(db, location, 0, () => undefined);
        await refuseOtherSchema(db, options);
        const tables = options.isExclusive ? options.shape.tables.map(({ name }) => name) : [];
        const snapshot = await beginPostgresSnapshot(db, location, tables);
        return { db: snapshot, close: () => closePostgresSnapshot(snapshot, db) };
      });
    }
  }
}

/** Ends the transaction first, because destroying the pool would wait for it. */
async function closePostgresSnapshot(snapshot: ControlledTransaction<Tables>, db: Database): Promise<void> {
  try {
    await snapshot.rollback().execute();
  } catch (error) {
    // If the connection was lost, the transaction has already ended.
    if (!(error instanceof DatabaseBusy)) throw error;
  } finally {
    await db.destroy();
  }
}

async function opening<T>(db: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** Sets another application name, because sessions with the API's name count as running APIs. */
function named(location: DatabaseLocation): DatabaseLocation {
  return location.kind === 'postgres' ? { ...location, applicationName: 'floodgate db' } : location;
}

/** Reading a large table takes longer than a request may. */
const WITHOUT_HURRY = { statementTimeoutMs: 0, poolSize: 2 } as const;

async function refuseOtherSchema(db: Database, { shape, what }: SnapshotOptions): Promise<void> {
  const applied = await appliedNames(db);
  if (applied.length === 0) throw new CopyRefused(`${what} is not a database of the API: it has no tables`);
  const newer = applied.filter((name) => !shape.migrations.includes(name));
  if (newer.length > 0) {
    throw new CopyRefused(
      `${what} was written by a newer version (it has ${newer.join(', ')}); copy with that version`,
    );
  }
  const missing = shape.migrations.filter((name) => !applied.includes(name));
  if (missing.length > 0) {
    throw new CopyRefused(
      `${what} is of an older version (it lacks ${missing.join(', ')}); start the API of this version on it once, stop it, and copy then`,
    );
  }
}

/**
 * Opens the target and migrates it to the newest schema.
 *
 * @throws CopyRefused, SchemaTooNew, DatabaseUnavailable
 */
export async function openTarget(location: DatabaseLocation): Promise<Target> {
  if (location.kind === 'memory') throw new CopyRefused('file::memory: ends with its process; name a file');
  // Do not flush every commit to disk: a copy can be resumed after a power failure, and closing flushes the file.
  const db = openDatabase(named(location), { ...WITHOUT_HURRY, synchronous: 'normal' });
  return opening(db, async () => {
    await awaitDatabase(db, location, 0, () => undefined);
    await migrate(db);
    const isPostgres = location.kind === 'postgres';
    return { db, refusesNul: isPostgres, isIndexedLast: !isPostgres, close: () => db.destroy() };
  });
}

export async function refuseHalf(db: Database): Promise<void> {
  if (await hasNote(db))
    throw new CopyRefused('the source is itself the target of a copy that has not ended');
}

export async function countRows(db: Database, { tables }: Shape): Promise<number> {
  let sum = 0;
  for (const { name } of tables) {
    const { rows } = await sql<{ count: number }>`select count(*) as "count" from ${sql.table(name)}`.execute(
      db,
    );
    sum += Number(rows[0]?.count ?? 0);
  }
  return sum;
}
