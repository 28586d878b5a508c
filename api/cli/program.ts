/** The commands of the API: they copy and back up its data, and add people. */
import { DatabaseBusy, DatabaseFault, DatabaseUnavailable } from '#api/db/faults.ts';
import { SchemaDiffers } from '#api/db/migrate.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import type { Program } from '#shared/cli/command.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { runProgram } from '#shared/cli/program.ts';
import { ConfigError } from '#shared/configuration.ts';
import { VERSION } from '#shared/version.ts';
import type { CommandContext } from './command.ts';

const PROGRAM: Program<CommandContext> = {
  name: 'node api/cli/main.ts',
  about: 'Moves the data of the survey API, backs it up, and adds people.',
  version: VERSION,
  groups: {
    Data: {
      'db copy': async () => (await import('./copy-database.ts')).COPY_DATABASE,
      'db backup': async () => (await import('./backup.ts')).BACKUP,
      'files copy': async () => (await import('./files.ts')).COPY_FILES,
    },
    People: {
      'people add': async () => (await import('./people.ts')).ADD,
      'people remove': async () => (await import('./people.ts')).REMOVE,
      'people list': async () => (await import('./people.ts')).LIST,
    },
  },
  epilogue: 'Exit codes: 0 fine, 1 refused, 2 wrong call, 3 could not be reached.',
  exitCodeOf,
  // Remove the name of the variable, because the commands name the database with an option.
  sentenceOf: ({ message }) => message.replace(/^DATABASE_URL: /, ''),
};

/** @param args without the names of Node and of the program */
export function runCli(args: readonly string[], context: CommandContext): Promise<ExitCode> {
  return runProgram(PROGRAM, args, context);
}

function exitCodeOf(error: Error): ExitCode | null {
  if (error instanceof SchemaDiffers) return EXIT.no;
  if (error instanceof DatabaseUnavailable || error instanceof DatabaseFault) return EXIT.unreachable;
  if (error instanceof DatabaseBusy || error instanceof StorageUnavailable) return EXIT.unreachable;
  return error instanceof ConfigError ? EXIT.usage : null;
}
