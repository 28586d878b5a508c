/** `db`: copies a database into another one, compares two databases, and backs one up. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Argv } from 'yargs';
import { backUp } from '#api/db/backup.ts';
import { copyRows } from '#api/db/copy/copy.ts';
import { countRows, type End, openSnapshot, openTarget, refuseHalf } from '#api/db/copy/ends.ts';
import { endNote } from '#api/db/copy/note.ts';
import { readShape, type Shape } from '#api/db/copy/shape.ts';
import { compare, type TableComparison } from '#api/db/copy/verify.ts';
import { type DatabaseLocation, describeLocation } from '#api/db/location.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import { Progress } from '#shared/cli/progress.ts';
import { type AddCommand, type CommandContext, databaseAt, databaseUrl } from './command.ts';
import { report } from './database-report.ts';

export const addDatabase: AddCommand = (program, context) =>
  program.command('db', 'Copies, compares and backs up the database', (command) =>
    [addCopy, addVerify, addBackup]
      .reduce((added, add) => add(added, context), command)
      .demandCommand(1, 'Name a command: copy, verify or backup.'),
  );

const URLS = 'file:PATH or postgres://…';

const addCopy: AddCommand = (program, context) =>
  program.command(
    'copy',
    'Copies all rows into an empty database, and compares both',
    (command) =>
      withEnds(command, context)
        .option('live', {
          type: 'boolean',
          default: false,
          describe: 'Also runs while the API runs, as a rehearsal: later writes are not copied',
        })
        .option('restart', {
          type: 'boolean',
          default: false,
          describe: 'Deletes what an unfinished copy left in the target, and begins anew',
        })
        .example(
          ...copyable(
            '$0 db copy --from file:./data/floodgate.sqlite --to postgres://floodgate@db.example.com/floodgate',
            'If interrupted, run the same command again to resume',
          ),
        ),
    (options) => context.run(() => copy(options, context)),
  );

const addVerify: AddCommand = (program, context) =>
  program.command(
    'verify',
    'Do two databases hold the same rows?',
    (command) => withEnds(command, context),
    (options) => context.run(() => verify(options, context)),
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
        .option('from', { type: 'string', default: databaseUrl(context), describe: 'The database' }),
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

interface Ends {
  readonly from: string;
  readonly to: string;
}

function withEnds(command: Argv<GlobalOptions>, context: CommandContext) {
  return command
    .option('from', {
      type: 'string',
      default: databaseUrl(context),
      describe: `The source, ${URLS}; that of DATABASE_URL unless given`,
    })
    .option('to', { type: 'string', demandOption: true, describe: `The target, ${URLS}` });
}

function endsOf({ from, to }: Ends, context: CommandContext) {
  const ends = { from: databaseAt('--from', from, context), to: databaseAt('--to', to, context) };
  if (describeLocation(ends.from) === describeLocation(ends.to)) {
    throw new CommandError('--from and --to name the same database', EXIT.usage);
  }
  return ends;
}

interface CopyArguments extends Ends, GlobalOptions {
  readonly live: boolean;
  readonly restart: boolean;
}

async function copy(options: CopyArguments, context: CommandContext): Promise<ExitCode> {
  const { from, to } = endsOf(options, context);
  const shape = await readShape();
  const source = await openSnapshot(from, { shape, isExclusive: !options.live, what: 'the source' });
  try {
    await refuseHalf(source.db);
    const total = await countRows(source.db, shape);
    const target = await openTarget(to);
    try {
      const copied = await showing(context, total, (onRows) =>
        copyRows({
          shape,
          from: source.db,
          to: target.db,
          source: describeLocation(from),
          isRestart: options.restart,
          refusesNul: target.refusesNul,
          isIndexedLast: target.isIndexedLast,
          onRows,
        }),
      );
      const tables = await compareWith(source, to, { shape, total, context });
      const isSame = tables.every((table) => table.isSame);
      // The API starts on the target only without this note, so it stays until both databases are the same.
      if (isSame) await endNote(target.db);
      report(tables, { copied, json: options.json, terminal: context.terminal });
      return isSame ? EXIT.ok : EXIT.no;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function verify(options: Ends & GlobalOptions, context: CommandContext): Promise<ExitCode> {
  const { from, to } = endsOf(options, context);
  const shape = await readShape();
  const source = await openSnapshot(from, { shape, isExclusive: false, what: 'the source' });
  try {
    const total = await countRows(source.db, shape);
    const tables = await compareWith(source, to, { shape, total, context });
    report(tables, { copied: null, json: options.json, terminal: context.terminal });
    return tables.every((table) => table.isSame) ? EXIT.ok : EXIT.no;
  } finally {
    await source.close();
  }
}

async function compareWith(
  source: End,
  to: DatabaseLocation,
  {
    shape,
    total,
    context,
  }: { readonly shape: Shape; readonly total: number; readonly context: CommandContext },
): Promise<readonly TableComparison[]> {
  const target = await openSnapshot(to, { shape, isExclusive: false, what: 'the target' });
  try {
    return await showing(context, 2 * total, (onRows) => compare(shape, source.db, target.db, onRows));
  } finally {
    await target.close();
  }
}

async function showing<T>(
  { terminal, clock }: CommandContext,
  total: number,
  work: (onRows: (count: number) => void) => Promise<T>,
): Promise<T> {
  const progress = new Progress(terminal, clock, { name: 'rows', size: 1 });
  let done = 0;
  try {
    return await work((count) => {
      done += count;
      progress.at(done, total);
    });
  } finally {
    progress.end();
  }
}
