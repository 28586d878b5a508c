/** `db backup`: copies a SQLite database to one file while it is in use. */
import { existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { writeSqliteBackup } from '#api/db/sqlite-snapshot.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { command, DATABASE, databaseAt } from './command.ts';

export const BACKUP = command({
  describe: 'Writes a SQLite database into a new file, while the API runs',
  options: {
    file: { isPositional: true, isRequired: true, describe: 'A file that does not exist yet' },
    from: { ...DATABASE, describe: 'The database' },
  },
  async run({ file, from, json }, context) {
    const path = resolve(context.cwd, file);
    if (!existsSync(dirname(path)))
      throw new CommandError(`${dirname(path)} does not exist; create the folder first`, EXIT.usage);
    if (existsSync(path)) throw new CommandError(`${path} already exists; name a new file`, EXIT.usage);
    const location = databaseAt('--from', from, context);
    if (location.kind === 'memory')
      throw new CommandError('file::memory: ends with its process; name a file', EXIT.usage);
    if (location.kind === 'postgres') {
      throw new CommandError(
        'PostgreSQL has its own tool: pg_dump --format=custom --file=FILE, and pg_restore',
        EXIT.usage,
      );
    }
    await backUp(location.path, path);
    const bytes = (await stat(path)).size;
    if (json) context.terminal.json({ file: path, bytes });
    else context.terminal.line(`${path}: ${bytes.toLocaleString('en')} bytes`);
    return EXIT.ok;
  },
});

/** The file appears only when it is complete and flushed to disk. @throws DatabaseUnavailable, DatabaseFault */
async function backUp(database: string, file: string): Promise<void> {
  const partial = `${file}.partial`;
  await rm(partial, { force: true });
  try {
    writeSqliteBackup(database, partial);
    await sync(partial);
    await rename(partial, file);
  } catch (error) {
    await rm(partial, { force: true });
    throw error;
  }
  await sync(dirname(file));
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
