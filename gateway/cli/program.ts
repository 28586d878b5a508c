/** All commands under one name. */
import { type AddCommand, type CommandContext, STANDARD_INPUT } from '#gateway/cli/command/command.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import { runProgram } from '#shared/cli/program.ts';
import { ConfigError } from '#shared/configuration.ts';
import { COMMAND_GROUPS, COMMANDS, OTHER_NAMES } from './commands/all.ts';
import { VERSION_TEXT } from './version-text.ts';

const DIGEST = /^-[\w-]{21}$/;

type CliOptions = Omit<CommandContext, 'run'>;

/** @param args without the names of Node and of the program */
export function runCli(args: readonly string[], options: CliOptions): Promise<ExitCode> {
  return runProgram({
    args: withoutLoneDashes(args),
    terminal: options.terminal,
    lists: ['header', 'H', 'log', 'logs'],
    exitCodeOf,
    async build(program, run) {
      const described = program
        .scriptName('floodgate')
        .usage('$0 <command>\n\nChecks, explains, rehearses and changes limits.')
        .demandCommand(1, 'Name a command; "floodgate --help" lists them.')
        .completion('completion', 'Prints a script that completes commands and options in your shell')
        .help()
        .alias('help', 'h')
        .version(VERSION_TEXT)
        .epilogue('Exit codes: 0 fine, 1 the answer is no, 2 wrong call, 3 could not be reached.')
        .fail((message, error) => {
          throw error ?? new CommandError(message + hintFor(args), EXIT.usage);
        });
      const commands = await commandsFor(args);
      const whole = commands.reduce((added, add) => add(added, { ...options, run }), described);
      if (!asksForOverview(args)) return whole;
      options.terminal.line(inGroups(await whole.getHelp()));
      return null;
    },
  });
}

function asksForOverview(args: readonly string[]): boolean {
  return firstWord(args) === '' && (args.includes('--help') || args.includes('-h'));
}

/** Replaces the one list of commands by one for each group. */
function inGroups(help: string): string {
  const [before = '', rest = ''] = help.split(/^Commands:\n/m);
  const [list = ''] = rest.split('\n\n');
  const lines = list.split('\n');
  const lineOf = (name: string): string =>
    lines.find((line) => line.trim().split(' ')[1] === name) ?? `  floodgate ${name}`;
  const groups = Object.entries(COMMAND_GROUPS).map(([title, commands]) =>
    [`${title}:`, ...Object.keys(commands).map(lineOf)].join('\n'),
  );
  groups.push(['This command line:', lineOf('completion')].join('\n'));
  return before + groups.join('\n\n') + rest.slice(list.length);
}

function hintFor(args: readonly string[]): string {
  const name = firstWord(args);
  return Object.hasOwn(COMMANDS, name) ? `; "floodgate ${name} --help" shows how to call it` : '';
}

function firstWord(args: readonly string[]): string {
  return args.find((arg) => !arg.startsWith('-')) ?? '';
}

/**
 * Returns the called command. Returns all of them without a command name, for help, completion and suggestions.
 *
 * @throws CommandError for the name that another program uses
 */
async function commandsFor(args: readonly string[]): Promise<AddCommand[]> {
  const first = firstWord(args);
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

function exitCodeOf(error: Error): ExitCode | null {
  if (error instanceof PolicyFileError) return EXIT.no;
  return error instanceof ConfigError ? EXIT.unreachable : null;
}
