/** Finds the called command, reads its arguments by its table, and turns errors into a sentence and an exit code. */
import { parseArgs } from 'node:util';
import { editDistance } from '#shared/edit-distance.ts';
import type { Commands, Option, Options, Program } from './command.ts';
import { CommandError, EXIT, type ExitCode } from './exit.ts';
import { commandHelp, overview } from './help.ts';
import type { Terminal } from './terminal.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const GLOBAL_FLAGS = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
/** A command whose name is at most so far from the given word was probably meant. */
const TYPOS_MAX = 2;

/** @param args without the names of Node and of the program */
export async function runProgram<Context extends { readonly terminal: Terminal; readonly env: Environment }>(
  program: Program<Context>,
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const { terminal, env } = context;
  try {
    const text = args[0] === '--version' ? program.version : await helpFor(program, args);
    if (text !== null) {
      terminal.line(text);
      return EXIT.ok;
    }
    const { command, given } = await readCall(program, args, env);
    return await command.run(given, context);
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
  if (wanted === '') return overview(program);
  const all = Object.entries(commandsOf(program));
  const shown = all.filter(([name]) => name === wanted || name.startsWith(`${wanted} `));
  const helps = shown.map(async ([name, load]) => commandHelp(program.name, name, await load()));
  return helps.length === 0 ? null : (await Promise.all(helps)).join('\n\n');
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

/**
 * @returns the called command, and the values of all its options
 * @throws CommandError
 */
export async function readCall<C>(program: Program<C>, args: readonly string[], env: Environment) {
  const { name, rest } = nameIn(program, args);
  const commands = commandsOf(program);
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load === undefined) throw unknownCommand(program.name, Object.keys(commands), name);
  const command = await load();
  try {
    return { command, given: readOptions(command.options, rest, env) };
  } catch (error) {
    // `--key --json`: the first option lacks its value. Later sentences of `parseArgs` are about its own options.
    const [sentence = ''] = (error as Error).message
      .replace(/^Option '(.+)' argument is ambiguous/, "Option '$1' needs a value, such as $1 VALUE")
      .split(/\.\s/);
    throw new CommandError(
      `${sentence.replace(/\.$/, '')}; "${program.name} ${name} --help" shows how to call it`,
      EXIT.usage,
    );
  }
}

function unknownCommand(program: string, names: readonly string[], name: string): CommandError {
  const usage = (message: string): CommandError => new CommandError(message, EXIT.usage);
  if (name === '') return usage(`Name a command; "${program} --help" lists them.`);
  const group = names.filter((known) => known.startsWith(`${name} `)).map((known) => known.split(' ')[1]);
  if (group.length > 0) return usage(`Name a command: ${group.join(', ')}.`);
  const [nearest] = names
    .map((known) => ({ known, distance: editDistance(known, name) }))
    .sort((a, b) => a.distance - b.distance);
  const isMeant = nearest !== undefined && nearest.distance <= TYPOS_MAX;
  const hint = isMeant ? `Did you mean ${nearest.known}?` : `"${program} --help" lists them.`;
  return usage(`Unknown command: ${name}. ${hint}`);
}

/** @throws Error with what is wrong */
function readOptions(
  options: Options,
  args: readonly string[],
  env: Environment,
): Readonly<Record<string, unknown>> {
  const rows = Object.entries(options);
  const named = rows.filter(([, { isPositional }]) => isPositional !== true);
  const [positional, row] = rows.find(([, { isPositional }]) => isPositional) ?? [];
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
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
  const tooMany = positionals[positional === undefined ? 0 : 1];
  if (tooMany !== undefined && row?.isList !== true) throw new Error(`"${tooMany}" is one argument too many`);
  const given: Readonly<Record<string, unknown>> = values;
  const read = rows.map(([option, one]) => {
    const texts = option === positional ? positionals : given[option];
    return [option, one.isFlag === true ? texts === true : readTexts(option, one, texts, env)];
  });
  return { ...Object.fromEntries(read), json: values.json === true };
}

/** @param given one text or several, as they were given */
function readTexts(name: string, option: Option, given: unknown, env: Environment): unknown {
  const { isList, isRequired, isPositional, variable, default: initial, choices, parse } = option;
  const title = isPositional === true ? name.toUpperCase() : `--${name}`;
  const fallback = (variable === undefined ? undefined : env[variable]) || initial;
  const texts = [given ?? []].flat().map(String);
  const found = texts.length > 0 || fallback === undefined ? texts : [fallback];
  if (found.length === 0 && isRequired === true) throw new Error(`${title} is missing`);
  const values = found.map((text) => {
    if (choices !== undefined && !choices.includes(text))
      throw new Error(`${title} is "${text}", and can be ${choices.join(', ')}`);
    try {
      return parse === undefined ? text : parse(text);
    } catch (error) {
      throw new Error(`${title}: ${(error as Error).message}`);
    }
  });
  return isList === true ? values : values[0];
}
