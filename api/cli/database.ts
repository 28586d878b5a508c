/** `db`: copies a SQLite database into PostgreSQL, and backs one up. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { backUp } from '#api/db/backup.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { type AddCommand, databaseAt, databaseUrl } from './command.ts';
import { addCopy } from './copy-database.ts';

export const addDatabase: AddCommand = (program, context) =>
  program.command('db', 'Copies and backs up the database', (command) =>
    [addCopy, addBackup]
      .reduce((added, add) => add(added, context), command)
      .demandCommand(1, 'Name a command: copy or backup.'),
  );

const addBackup: AddCommand = (program, context) =>
  program.command(
    'backup <file>',
    'Writes a SQLite database into a new file, while the API runs',
    (command) =>
      command
        .positional('file', {
          type: 'string',
          demandOption: true,
          describe: 'A file that does not exist yet',
        })
        .option('from', {
          type: 'string',
          default: databaseUrl(context),
          defaultDescription: 'DATABASE_URL',
          describe: 'The database',
        }),
    ({ file, from, json }) =>
      context.run(async () => {
        const path = resolve(context.cwd, file);
        if (!existsSync(dirname(path))) {
          throw new CommandError(`${dirname(path)} does not exist; create the folder first`, EXIT.usage);
        }
        if (existsSync(path)) throw new CommandError(`${path} already exists; name a new file`, EXIT.usage);
        const location = databaseAt('--from', from, context);
        const { bytes } = await backUp(location, path);
        if (json) context.terminal.json({ file: path, bytes });
        else context.terminal.line(`${path}: ${bytes.toLocaleString('en')} bytes`);
        return EXIT.ok;
      }),
  );
