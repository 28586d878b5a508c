/** `db backup`: copies a SQLite database to one file while it is in use. */
import { existsSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { sql } from 'kysely';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { command, DATABASE, databaseAt, withDatabase } from './command.ts';

export const BACKUP = command({
  describe: 'Writes a SQLite database into a new file, while the API runs',
  options: {
    file: { isPositional: true, isRequired: true, describe: 'A file that does not exist yet' },
    from: { ...DATABASE, describe: 'The database' },
  },
  async run({ file, from, json }, context) {
    const path = resolve(context.cwd, file);
    if (!existsSync(dirname(path)) || existsSync(path))
      throw new CommandError(`${path}: name a new file in a folder that exists`, EXIT.usage);
    const location = databaseAt('--from', from, context);
    if (location.kind !== 'file') {
      throw new CommandError(
        'give a SQLite file; PostgreSQL has its own tool: pg_dump --format=custom --file=FILE, and pg_restore',
        EXIT.usage,
      );
    }
    // The file appears only when it is complete and flushed to disk.
    const partial = `${path}.partial`;
    await rm(partial, { force: true });
    try {
      await withDatabase(location, (db) => sql`vacuum into ${partial}`.execute(db));
      await sync(partial);
      await rename(partial, path);
    } finally {
      await rm(partial, { force: true });
    }
    await sync(dirname(path));
    const bytes = (await stat(path)).size;
    if (json) context.terminal.json({ file: path, bytes });
    else context.terminal.line(`${path}: ${bytes.toLocaleString('en')} bytes`);
    return EXIT.ok;
  },
});

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
