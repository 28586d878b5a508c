/** The commands that copy and back up the API's data. */
import yargs, { type Argv } from 'yargs';
import { NoBackup } from '#api/db/backup.ts';
import { CopyRefused } from '#api/db/copy/copy.ts';
import { CopyInterfered } from '#api/db/copy/note.ts';
import { DatabaseBusy, DatabaseFault, DatabaseInUse, DatabaseUnavailable } from '#api/db/faults.ts';
import { SchemaTooNew } from '#api/db/migrate.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { ConfigError } from '#shared/configuration.ts';
import type { CommandContext, GlobalOptions } from './command.ts';
import { addDatabase } from './database.ts';
import { addFiles } from './files.ts';

type CliOptions = Omit<CommandContext, 'run'>;

/** @param args without the names of Node and of the program */
export async function runCli(args: readonly string[], options: CliOptions): Promise<ExitCode> {
  const { terminal } = options;
  let exitCode: ExitCode = EXIT.ok;
  const end = (error: unknown): void => {
    exitCode = exitCodeOf(error);
    terminal.error(exitCode === EXIT.fault ? stackOf(error) : sentenceOf(error));
  };
  const context: CommandContext = {
    ...options,
    async run(body) {
      try {
        exitCode = await body();
      } catch (error) {
        end(error);
      }
    },
  };
  let program: Argv<GlobalOptions> = yargs(args)
    .scriptName('node api/cli/main.ts')
    // If an option is given twice, the last one counts.
    .parserConfiguration({ 'duplicate-arguments-array': false })
    .usage('$0 <command>\n\nMoves the data of the survey API, and backs it up.')
    .option('json', {
      type: 'boolean',
      default: false,
      global: true,
      describe: 'One JSON document instead of tables',
    })
    .demandCommand(1, 'Name a command; --help lists them.')
    .strict()
    .recommendCommands()
    .help()
    .alias('help', 'h')
    .version(false)
    .exitProcess(false)
    .showHelpOnFail(false)
    .epilogue('Exit codes: 0 fine, 1 refused or not the same, 2 wrong call, 3 could not be reached.')
    .fail((message, error) => {
      throw error ?? new CommandError(message, EXIT.usage);
    });
  for (const add of [addDatabase, addFiles]) program = add(program, context);
  try {
    await program.parseAsync();
  } catch (error) {
    end(error);
  }
  return exitCode;
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof CopyRefused || error instanceof CopyInterfered) return EXIT.no;
  if (error instanceof NoBackup) return EXIT.usage;
  if (error instanceof DatabaseInUse || error instanceof SchemaTooNew) return EXIT.no;
  if (error instanceof DatabaseUnavailable || error instanceof DatabaseFault) return EXIT.unreachable;
  if (error instanceof DatabaseBusy || error instanceof StorageUnavailable) return EXIT.unreachable;
  if (error instanceof ConfigError) return EXIT.usage;
  // Errors that yargs reports.
  if (error instanceof Error && error.name === 'YError') return EXIT.usage;
  return EXIT.fault;
}

/** Explains an error. The commands name the database with an option, not with a variable. */
function sentenceOf(error: unknown): string {
  return (error as Error).message.replace(/^DATABASE_URL: /, '');
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
