/** The two ends of a copy: opened, looked at and closed. */
import { type Kysely, sql } from 'kysely';
import { openDatabase } from '../database.ts';
import type { DatabaseLocation } from '../location.ts';
import { appliedNames, migrate } from '../migrate.ts';
import type { Database } from '../schema.ts';
import { openSqliteSnapshot } from '../sqlite-snapshot.ts';
import { CopyRefused } from './copy.ts';
import { hasNote } from './note.ts';
import type { Shape } from './shape.ts';

export interface End {
  readonly db: Kysely<Database>;
  close(): Promise<void>;
}

export interface Target extends End {
  /** It cannot store the character NUL. */
  readonly refusesNul: boolean;
}

/**
 * A database as it is at one moment, complete and at the schema of this version.
 *
 * @param isExclusive no other process may use it meanwhile
 * @param what names it in messages, such as "the source"
 * @throws CopyRefused, DatabaseUnavailable, DatabaseInUse
 */
export async function openSnapshot(
  location: DatabaseLocation,
  {
    shape,
    isExclusive,
    what,
  }: { readonly shape: Shape; readonly isExclusive: boolean; readonly what: string },
): Promise<End> {
  const end = snapshotOf(location, isExclusive);
  try {
    await refuseOtherSchema(end.db, shape, what);
    return end;
  } catch (error) {
    await end.close();
    throw error;
  }
}

function snapshotOf(location: DatabaseLocation, isExclusive: boolean): End {
  switch (location.kind) {
    case 'memory':
      throw new CopyRefused('file::memory: ends with its process; name a file');
    case 'file': {
      const db = openSqliteSnapshot(location.path, isExclusive);
      return { db, close: () => db.destroy() };
    }
  }
}

async function refuseOtherSchema(db: Kysely<Database>, shape: Shape, what: string): Promise<void> {
  const applied = await appliedNames(db);
  if (applied.length === 0) throw new CopyRefused(`${what} is no database of the API: it has no tables`);
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
 * Where rows are copied to; it is brought to the newest schema.
 *
 * @throws CopyRefused, SchemaTooNew, DatabaseUnavailable
 */
export async function openTarget(location: DatabaseLocation): Promise<Target> {
  if (location.kind === 'memory') throw new CopyRefused('file::memory: ends with its process; name a file');
  // What a power failure takes is copied again; the file is flushed when it is closed.
  const db = openDatabase(location, { synchronous: 'normal' });
  try {
    await migrate(db);
    return { db, refusesNul: false, close: () => db.destroy() };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** @throws CopyRefused when the source of a copy is itself half a copy */
export async function refuseHalf(db: Kysely<Database>): Promise<void> {
  if (await hasNote(db))
    throw new CopyRefused('the source is itself the target of a copy that has not ended');
}

export async function countRows(db: Kysely<Database>, { tables }: Shape): Promise<number> {
  let sum = 0;
  for (const { name } of tables) {
    const { rows } = await sql<{ count: number }>`select count(*) as "count" from ${sql.table(name)}`.execute(
      db,
    );
    sum += Number(rows[0]?.count ?? 0);
  }
  return sum;
}
