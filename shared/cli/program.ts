/** Finds the called command, reads its arguments by its table, and turns errors into a sentence and an exit code. */
import { parseArgs } from 'node:util';
import { editDistance } from '#shared/edit-distance.ts';
import type { Command, Commands, Option, Options } from './command.ts';
import { CommandError, EXIT, type ExitCode } from './exit.ts';
import { commandHelp, overview, usageOf } from './help.ts';
import type { Terminal } from './terminal.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Program<Context> {
  /** How people call the program. */
  readonly name: string;
  readonly about: string;
  readonly version: string;
  /** Commands by the title of their group. */
  readonly groups: Readonly<Record<string, Commands<Context>>>;
  /** Names that other programs give to these commands. */
  readonly otherNames?: Readonly<Record<string, string>>;
  readonly epilogue: string;
  /** Returns null if the program does not expect this error. */
  readonly exitCodeOf: (error: Error) => ExitCode | null;
  /** Returns the sentence for an error. Default: its message. */
  readonly sentenceOf?: (error: Error) => string;
}

interface Call<Context> {
  readonly name: string;
  readonly command: Command<Context>;
  /** Arguments after the name. */
  readonly args: readonly string[];
}

const GLOBAL_FLAGS = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;

/** @param args without the names of Node and of the program */
export async function runProgram<Context extends { readonly terminal: Terminal; readonly env: Environment }>(
  program: Program<Context>,
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const { terminal, env } = context;
  try {
    if (args[0] === '--version') {
      terminal.line(program.version);
      return EXIT.ok;
    }
    const help = await helpFor(program, args);
    if (help !== null) {
      terminal.line(help);
      return EXIT.ok;
    }
    const call = await calledCommand(program, args);
    return await call.command.run(readArguments(program, call, env), context);
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const exitCode =
      error instanceof CommandError ? error.exitCode : (program.exitCodeOf(error) ?? EXIT.fault);
    const { sentenceOf = ({ message }) => message } = program;
    terminal.error(exitCode === EXIT.fault ? (error.stack ?? error.message) : sentenceOf(error));
    return exitCode;
  }
}

/** @returns null if no help is asked for. That of a group is the help of each of its commands. */
async function helpFor<C>(program: Program<C>, args: readonly string[]): Promise<string | null> {
  const options = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  if (!options.includes('--help') && !options.includes('-h')) return null;
  const { name: wanted } = nameIn(program, args);
  if (wanted === '') return overviewOf(program);
  const all = Object.entries(commandsOf(program));
  const shown = all.filter(([name]) => name === wanted || name.startsWith(`${wanted} `));
  const helps = shown.map(async ([name, load]) => commandHelp(program.name, name, await load()));
  return helps.length === 0 ? null : (await Promise.all(helps)).join('\n\n');
}

async function overviewOf<C>({ name: called, about, groups, epilogue }: Program<C>): Promise<string> {
  const rows = Object.entries(groups).map(async ([title, commands]) => {
    const loaded = Object.entries(commands).map(async ([name, load]) => {
      const command = await load();
      return [usageOf(called, name, command), command.describe] as const;
    });
    return [title, await Promise.all(loaded)] as const;
  });
  return overview(`${called} <command>\n\n${about}`, Object.fromEntries(await Promise.all(rows)), epilogue);
}

function commandsOf<C>({ groups }: Program<C>): Commands<C> {
  return Object.assign({}, ...Object.values(groups));
}

/** Returns the name of the command, of one or two words, and the arguments without it. */
function nameIn<C>(program: Program<C>, args: readonly string[]): { name: string; rest: readonly string[] } {
  const at = args.findIndex((arg) => !arg.startsWith('-'));
  if (at < 0) return { name: '', rest: args };
  const count = Object.hasOwn(commandsOf(program), args.slice(at, at + 2).join(' ')) ? 2 : 1;
  const name = args.slice(at, at + count).join(' ');
  return { name, rest: [...args.slice(0, at), ...args.slice(at + count)] };
}

/** @throws CommandError */
export async function calledCommand<C>(program: Program<C>, args: readonly string[]): Promise<Call<C>> {
  const { name, rest } = nameIn(program, args);
  const commands = commandsOf(program);
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load !== undefined) return { name, command: await load(), args: rest };
  const names = Object.keys(commands);
  if (name === '') throw new CommandError(`Name a command; "${program.name} --help" lists them.`, EXIT.usage);
  const group = names.filter((known) => known.startsWith(`${name} `)).map((known) => known.split(' ')[1]);
  if (group.length > 0) throw new CommandError(`Name a command: ${group.join(', ')}.`, EXIT.usage);
  const { otherNames = {} } = program;
  const [nearest] = names
    .map((known) => ({ known, distance: editDistance(known, name) }))
    .filter(({ distance }) => distance <= 2)
    .sort((a, b) => a.distance - b.distance);
  const meant = Object.hasOwn(otherNames, name) ? otherNames[name] : nearest?.known;
  throw new CommandError(
    `Unknown command: ${name}. ${meant === undefined ? `"${program.name} --help" lists them.` : `Did you mean ${meant}?`}`,
    EXIT.usage,
  );
}

/**
 * @returns the values of all options of the command
 * @throws CommandError
 */
export function readArguments<C>(
  { name: program }: Pick<Program<C>, 'name'>,
  { name, command: { options }, args }: Call<C>,
  env: Environment,
): Readonly<Record<string, unknown>> {
  try {
    const { json = false, ...texts } = textsIn(options, args);
    const values = Object.entries(options).map(([option, row]) => {
      const { variable, isFlag, isList, default: initial } = row;
      const given = texts[option];
      if (isFlag === true) return [option, given === true];
      if (Array.isArray(given)) return [option, given.map((text) => readValue(option, row, text))];
      if (isList === true && row.isRequired !== true) return [option, []];
      const text = given ?? ((variable === undefined ? undefined : env[variable]) || initial);
      if (typeof text === 'string') return [option, readValue(option, row, text)];
      if (row.isRequired === true) throw new Error(`${nameOf(option, row)} is missing`);
      return [option, undefined];
    });
    return { ...Object.fromEntries(values), json: json === true };
  } catch (error) {
    // `--key --json`: the first option lacks its value. Later sentences of `parseArgs` are about its own options.
    const [sentence = ''] = (error as Error).message
      .replace(/^Option '(.+)' argument is ambiguous/, "Option '$1' needs a value, such as $1 VALUE")
      .split(/\.\s/);
    throw new CommandError(
      `${sentence.replace(/\.$/, '')}; "${program} ${name} --help" shows how to call it`,
      EXIT.usage,
    );
  }
}

/** @throws Error */
function textsIn(options: Options, args: readonly string[]): Record<string, unknown> {
  const named = Object.entries(options).filter(([, { isPositional }]) => isPositional !== true);
  const [positional, row] = Object.entries(options).find(([, { isPositional }]) => isPositional) ?? [];
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    allowPositionals: true,
    tokens: true,
    options: {
      ...GLOBAL_FLAGS,
      ...Object.fromEntries(
        named.map(([option, { isFlag, isList, short }]) => [
          option,
          {
            type: isFlag === true ? 'boolean' : 'string',
            multiple: isList === true,
            ...(short === undefined ? {} : { short }),
          } as const,
        ]),
      ),
    },
  });
  const given = tokens.flatMap((token) => (token.kind === 'option' ? token.name : []));
  const repeated = given.find((option, i) => given.indexOf(option) < i && options[option]?.isList !== true);
  if (repeated !== undefined) throw new Error(`--${repeated} is given twice; give it once`);
  const [first, another] = positionals;
  const tooMany = positional === undefined ? first : another;
  if (positional === undefined || first === undefined) {
    if (tooMany !== undefined) throw new Error(`"${tooMany}" is one argument too many`);
    return values;
  }
  if (row?.isList === true) return { ...values, [positional]: positionals };
  if (tooMany !== undefined) throw new Error(`"${tooMany}" is one argument too many`);
  return { ...values, [positional]: first };
}

function readValue(name: string, option: Option, text: string): unknown {
  const { choices, parse } = option;
  if (choices !== undefined && !choices.includes(text))
    throw new Error(`${nameOf(name, option)} is "${text}", and can be ${choices.join(', ')}`);
  try {
    return parse === undefined ? text : parse(text);
  } catch (error) {
    throw new Error(`${nameOf(name, option)}: ${(error as Error).message}`);
  }
}

function nameOf(name: string, { isPositional }: Option): string {
  return isPositional === true ? name.toUpperCase() : `--${name}`;
}
