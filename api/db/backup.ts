/** Copies the whole database to one file while it is in use. */
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DatabaseLocation } from './location.ts';
import { writeSqliteBackup } from './sqlite-snapshot.ts';

/** Thrown if this kind of database has its own backup tool, which the message names. */
export class NoBackup extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NoBackup';
  }
}

/**
 * Writes a backup. The file appears only when it is complete and flushed to disk.
 *
 * @param file absolute path; must not exist
 * @throws NoBackup, DatabaseUnavailable, DatabaseFault
 */
export async function backUp(location: DatabaseLocation, file: string): Promise<{ readonly bytes: number }> {
  if (location.kind === 'memory') throw new NoBackup('file::memory: ends with its process; name a file');
  if (location.kind === 'postgres') {
    throw new NoBackup('PostgreSQL has its own tool: pg_dump --format=custom --file=FILE, and pg_restore');
  }
  const partial = `${file}.partial`;
  await rm(partial, { force: true });
  try {
    writeSqliteBackup(location.path, partial);
    await sync(partial);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  await sync(dirname(file));
  return { bytes: (await stat(file)).size };
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
