/** The commands of the API: they copy and back up its data, and add people. */
import { NoBackup } from '#api/db/backup.ts';
import { DatabaseBusy, DatabaseFault, DatabaseInUse, DatabaseUnavailable } from '#api/db/faults.ts';
import { SchemaDiffers } from '#api/db/migrate.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { runProgram } from '#shared/cli/program.ts';
import { ConfigError } from '#shared/configuration.ts';
import type { CommandContext } from './command.ts';
import { addDatabase } from './database.ts';
import { addFiles } from './files.ts';
import { addPeople } from './people.ts';

type CliOptions = Omit<CommandContext, 'run'>;

/** @param args without the names of Node and of the program */
export function runCli(args: readonly string[], options: CliOptions): Promise<ExitCode> {
  return runProgram({
    args,
    terminal: options.terminal,
    exitCodeOf,
    // Remove the name of the variable, because the commands name the database with an option.
    sentenceOf: ({ message }) => message.replace(/^DATABASE_URL: /, ''),
    async build(program, run) {
      const described = program
        .scriptName('node api/cli/main.ts')
        .usage('$0 <command>\n\nMoves the data of the survey API, backs it up, and adds people.')
        .demandCommand(1, 'Name a command; --help lists them.')
        .help()
        .alias('help', 'h')
        .version(false)
        .epilogue('Exit codes: 0 fine, 1 refused, 2 wrong call, 3 could not be reached.');
      return [addDatabase, addFiles, addPeople].reduce(
        (added, add) => add(added, { ...options, run }),
        described,
      );
    },
  });
}

function exitCodeOf(error: Error): ExitCode | null {
  if (error instanceof SchemaDiffers) return EXIT.no;
  if (error instanceof NoBackup) return EXIT.usage;
  if (error instanceof DatabaseInUse) return EXIT.no;
  if (error instanceof DatabaseUnavailable || error instanceof DatabaseFault) return EXIT.unreachable;
  if (error instanceof DatabaseBusy || error instanceof StorageUnavailable) return EXIT.unreachable;
  return error instanceof ConfigError ? EXIT.usage : null;
}
