/** All commands under one name. */
import yargs, { type Argv } from 'yargs';
import {
  type AddCommand,
  type CommandContext,
  type GlobalOptions,
  STANDARD_INPUT,
} from '#gateway/cli/command/command.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { ConfigError } from '#shared/configuration.ts';
import { VERSION } from '#shared/version.ts';
import { COMMANDS, OTHER_NAMES } from './commands/all.ts';

const DIGEST = /^-[\w-]{21}$/;

type CliOptions = Omit<CommandContext, 'run'>;

/** @param args without the names of Node and of the program */
export async function runCli(args: readonly string[], options: CliOptions): Promise<ExitCode> {
  const { terminal } = options;
  let exitCode: ExitCode = EXIT.ok;
  const context: CommandContext = {
    ...options,
    async run(body) {
      try {
        exitCode = await body();
      } catch (error) {
        exitCode = exitCodeOf(error);
        terminal.error(exitCode === EXIT.fault ? stackOf(error) : (error as Error).message);
      }
    },
  };
  let program: Argv<GlobalOptions> = yargs(withoutLoneDashes(args))
    .scriptName('floodgate')
    .usage('$0 <command>\n\nChecks, explains, rehearses and changes limits.')
    .option('json', {
      type: 'boolean',
      default: false,
      global: true,
      describe: 'One JSON document instead of tables',
    })
    .demandCommand(1, 'Name a command; "floodgate --help" lists them.')
    .strict()
    .recommendCommands()
    .completion('completion', 'Prints a script that completes commands and options in your shell')
    .help()
    .alias('help', 'h')
    .version(VERSION)
    .exitProcess(false)
    .showHelpOnFail(false)
    .epilogue('Exit codes: 0 fine, 1 the answer is no, 2 wrong call, 3 could not be reached.')
    .fail((message, error) => {
      throw error ?? new CommandError(message, EXIT.usage);
    });
  try {
    for (const add of await commandsFor(args)) program = add(program, context);
    await program.parseAsync();
  } catch (error) {
    exitCode = exitCodeOf(error);
    terminal.error(exitCode === EXIT.fault ? stackOf(error) : (error as Error).message);
  }
  return exitCode;
}

/**
 * Returns the called command. Returns all of them without a command name, for help, completion and suggestions.
 *
 * @throws CommandError for the name that another program uses
 */
async function commandsFor(args: readonly string[]): Promise<AddCommand[]> {
  const first = args.find((arg) => !arg.startsWith('-')) ?? '';
  const meant = Object.hasOwn(OTHER_NAMES, first) ? OTHER_NAMES[first] : undefined;
  if (meant !== undefined)
    throw new CommandError(`Unknown command: ${first}. Did you mean ${meant}?`, EXIT.usage);
  const called = Object.hasOwn(COMMANDS, first) ? COMMANDS[first] : undefined;
  const wanted = called === undefined ? Object.values(COMMANDS) : [called];
  return Promise.all(wanted.map((load) => load()));
}

/** Handles arguments with a dash that are no options: standard input, and one digest in 64. */
function withoutLoneDashes(args: readonly string[]): string[] {
  const written: string[] = [];
  for (const arg of args) {
    const isNamed = written.at(-1) === '--digest';
    if (isNamed && DIGEST.test(arg)) written[written.length - 1] = `--digest=${arg}`;
    else if (DIGEST.test(arg) && /^-[^-]/.test(arg)) written.push(`--digest=${arg}`);
    else written.push(arg === '-' ? STANDARD_INPUT : arg);
  }
  return written;
}

function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CommandError) return error.exitCode;
  if (error instanceof PolicyFileError) return EXIT.no;
  if (error instanceof ConfigError) return EXIT.unreachable;
  // A usage error of yargs.
  if (error instanceof Error && error.name === 'YError') return EXIT.usage;
  return EXIT.fault;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
