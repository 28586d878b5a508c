/** `db`: copies a SQLite database into PostgreSQL, and backs one up. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { backUp } from '#api/db/backup.ts';
import { copyDatabase } from '#api/db/copy/copy.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import { Progress } from '#shared/cli/progress.ts';
import { type AddCommand, type CommandContext, databaseAt, databaseUrl } from './command.ts';

export const addDatabase: AddCommand = (program, context) =>
  program.command('db', 'Copies and backs up the database', (command) =>
    [addCopy, addBackup]
      .reduce((added, add) => add(added, context), command)
      .demandCommand(1, 'Name a command: copy or backup.'),
  );

const addCopy: AddCommand = (program, context) =>
  program.command(
    'copy',
    'Copies all rows of a SQLite database into an empty PostgreSQL database',
    (command) =>
      command
        .option('from', {
          type: 'string',
          default: databaseUrl(context),
          defaultDescription: 'DATABASE_URL',
          describe: 'The source, file:PATH; that of DATABASE_URL unless given',
        })
        .option('to', { type: 'string', demandOption: true, describe: 'The target, postgres://…' })
        .example(
          ...copyable(
            '$0 db copy --from file:./data/floodgate.sqlite --to postgres://floodgate@db.example.com/floodgate',
            'If interrupted, run the same command again: it begins anew',
          ),
        ),
    (options) => context.run(() => copy(options, context)),
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

interface CopyArguments extends GlobalOptions {
  readonly from: string;
  readonly to: string;
}

async function copy(options: CopyArguments, context: CommandContext): Promise<ExitCode> {
  const from = databaseAt('--from', options.from, context);
  const to = databaseAt('--to', options.to, context);
  if (from.kind !== 'file')
    throw new CommandError('--from: give the SQLite file to copy, as file:PATH', EXIT.usage);
  if (to.kind !== 'postgres')
    throw new CommandError(
      '--to: give an empty PostgreSQL database, as postgres://…; "db backup" copies to a file',
      EXIT.usage,
    );
  const { terminal, clock } = context;
  const progress = new Progress(terminal, clock, { name: 'rows', size: 1 });
  const onRows = (done: number, total: number): void => progress.at(done, total);
  const tables = await copyDatabase({ path: from.path, to, onRows }).finally(() => progress.end());
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  if (options.json) terminal.json({ rows, tables });
  else {
    terminal.table(
      ['table', 'rows'],
      tables.map((table) => [table.table, table.rows]),
    );
    terminal.line();
    terminal.line(
      `${rows.toLocaleString('en')} rows copied. Both databases have the same number in each table.`,
    );
  }
  return EXIT.ok;
}
