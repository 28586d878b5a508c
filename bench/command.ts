/** Defines a command of the bench, and the types of its options. */
import type { ArgumentsCamelCase, Argv } from 'yargs';
import type { Processes } from './run/processes.ts';

/** The command line is wrong, or something that a command needs is missing. */
export class UsageError extends Error {}

interface Command<Args> {
  /** Name of the command and its positional arguments. */
  readonly command: string | readonly string[];
  readonly describe: string;
  readonly builder: (program: Argv) => Argv<Args>;
  /**
   * @param processes starts processes, which end together with the command
   * @returns false if a check has failed
   */
  run(processes: Processes, args: ArgumentsCamelCase<Args>): Promise<boolean>;
}

/** Starts a command. Tests replace it with a function that only reads the arguments. */
export type Start = (args: unknown, body: (processes: Processes) => Promise<boolean>) => Promise<void>;

/** Creates a function that adds a command to the program. Each file in `commands/` exports one. */
export function command<Args>({ command, describe, builder, run }: Command<Args>) {
  return (program: Argv, start: Start): Argv =>
    program.command(command, describe, builder, (args) => start(args, (processes) => run(processes, args)));
}

/** Defines an option with a whole number. */
export function whole(name: string, min: number, max: number, initial: number, describe: string) {
  return {
    type: 'string',
    describe: `${describe}, from ${min} to ${max}`,
    default: initial,
    coerce(given: string | number | readonly string[]): number {
      const text = once(name, given);
      const value = String(text).trim() === '' ? Number.NaN : Number(text);
      if (value >= min && value <= max && Number.isInteger(value)) return value;
      throw new UsageError(`--${name} is "${text}"; it must be a whole number from ${min} to ${max}`);
    },
  } as const;
}

/** Defines an option with a text. */
export function text(name: string, describe: string) {
  return {
    type: 'string',
    describe,
    coerce: (given: string | readonly string[] | undefined): string | undefined => once(name, given),
  } as const;
}

/** Defines an option with a list of names, separated by commas. It may be repeated. */
export function names<Name extends string>(name: string, known: readonly Name[], describe: string) {
  return {
    type: 'string',
    describe: `${describe}, separated by commas: ${known.join(', ')}`,
    coerce(given: string | readonly string[] | undefined): readonly Name[] | undefined {
      if (given === undefined) return undefined;
      const asked = String(given)
        .split(',')
        .map((part) => part.trim());
      const unknown = asked.filter((part) => !known.some((one) => one === part));
      if (unknown.length > 0)
        throw new UsageError(`--${name} does not know ${unknown.join(', ')}; it knows ${known.join(', ')}`);
      return known.filter((one) => asked.includes(one));
    },
  } as const;
}

/** yargs collects the values of a repeated option in an array. */
function once<Value extends string | number | undefined>(
  name: string,
  given: Value | readonly string[],
): Value {
  if (typeof given === 'object') throw new UsageError(`--${name} is given twice; give it once`);
  return given;
}
