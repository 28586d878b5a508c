import { existsSync } from 'node:fs';
import { awaitDatabase, openDatabase } from '#api/db/database.ts';
import type { DatabaseLocation } from '#api/db/location.ts';
import { appliedNames, refuseOtherSchema } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** Opens a database that exists and has the schema of this version. */
export async function openExisting(location: DatabaseLocation): Promise<Database> {
  if (location.kind === 'file' && !existsSync(location.path))
    throw new CommandError(`cannot open ${location.path}: there is no such file`, EXIT.unreachable);
  const db = openDatabase(location);
  try {
    await awaitDatabase(db, location, 0, () => undefined);
    refuseOtherSchema(await appliedNames(db), 'the database');
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}
