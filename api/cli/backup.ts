/** `db backup`: backs up a SQLite database. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { backUp } from '#api/db/backup.ts';
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
    const { bytes } = await backUp(location, path);
    if (json) context.terminal.json({ file: path, bytes });
    else context.terminal.line(`${path}: ${bytes.toLocaleString('en')} bytes`);
    return EXIT.ok;
  },
});
