/** Parts that the command lines of both programs share: the option `--json`, exit codes and the printing of errors. */
import yargs, { type Argv } from 'yargs';
import { CommandError, EXIT, type ExitCode } from './exit.ts';
import { repeatedOption } from './repeated.ts';
import type { Terminal } from './terminal.ts';

/** Options of every command. */
export interface GlobalOptions {
  readonly json: boolean;
}

/** Runs the body of a command. If it throws, sets the exit code and prints one sentence. */
export type RunCommand = (body: () => Promise<ExitCode> | ExitCode) => Promise<void>;

interface Program {
  /** Arguments without the names of Node and of the program. */
  readonly args: readonly string[];
  readonly terminal: Terminal;
  /** Names and aliases of the options and positionals that take several values. */
  readonly lists?: readonly string[];
  /** Adds the commands and the help texts. Returns null if nothing is left to do. */
  readonly build: (program: Argv<GlobalOptions>, run: RunCommand) => Promise<Argv<GlobalOptions> | null>;
  /** Returns null if the program does not expect this error. */
  readonly exitCodeOf: (error: Error) => ExitCode | null;
  /** Returns the sentence for an error. Default: its message. */
  readonly sentenceOf?: (error: Error) => string;
}

/** Returns an example for a help text: a line of its own, which people can copy, below what it does. */
export function copyable(command: string, what: string): [command: string, what: string] {
  return [`# ${what}\n${command}`, ''];
}

export async function runProgram(program: Program): Promise<ExitCode> {
  const { args, terminal, lists = [], build, sentenceOf = ({ message }) => message } = program;
  let exitCode: ExitCode = EXIT.ok;
  const run: RunCommand = async (body) => {
    try {
      exitCode = await body();
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      exitCode = exitCodeOf(error, program);
      terminal.error(exitCode === EXIT.fault ? (error.stack ?? error.message) : sentenceOf(error));
    }
  };
  const frame = yargs(args)
    // The terminal breaks long lines itself, so that a copied line is whole.
    .wrap(null)
    .option('json', {
      type: 'boolean',
      default: false,
      global: true,
      describe: 'One JSON document instead of tables',
    })
    .strict()
    .check((options) => {
      const repeated = repeatedOption(options, lists);
      if (repeated !== null) throw new CommandError(repeated, EXIT.usage);
      return true;
    })
    .recommendCommands()
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      throw error ?? new CommandError(message, EXIT.usage);
    });
  await run(async () => {
    await (await build(frame, run))?.parseAsync();
    return exitCode;
  });
  return exitCode;
}

function exitCodeOf(error: Error, program: Program): ExitCode {
  if (error instanceof CommandError) return error.exitCode;
  // A usage error of yargs.
  if (error.name === 'YError') return EXIT.usage;
  return program.exitCodeOf(error) ?? EXIT.fault;
}
