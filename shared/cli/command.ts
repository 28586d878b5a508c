/**
 * A command is a table of options and a function. The table is enough to read the arguments (`program.ts`), and to
 * write the help (`help.ts`).
 */
import type { ExitCode } from './exit.ts';

export interface Option {
  readonly describe: string;
  /** Whether the option has no value. */
  readonly isFlag?: true;
  /** Whether its values are the arguments without a name. A command has at most one such option. */
  readonly isPositional?: true;
  /** Whether it may be given several times. */
  readonly isList?: true;
  readonly isRequired?: true;
  /** Another name, of one letter. */
  readonly short?: string;
  /** An environment variable that is used if the option is not given. */
  readonly variable?: string;
  readonly default?: string;
  readonly choices?: readonly string[];
  /** Reads the text of a value. @throws Error that says what would be right */
  readonly parse?: (text: string) => unknown;
}

export type Options = Readonly<Record<string, Option>>;

type OneOf<O> = O extends { readonly parse: (text: string) => infer Value }
  ? Value
  : O extends { readonly choices: readonly (infer Choice)[] }
    ? Choice
    : string;
type ValueOf<O> = O extends { readonly isFlag: true }
  ? boolean
  : O extends { readonly isList: true }
    ? readonly OneOf<O>[]
    : O extends { readonly default: string } | { readonly isRequired: true }
      ? OneOf<O>
      : OneOf<O> | undefined;

/** What was given for the options of a command. Every command has the option `--json`. */
export type Given<O extends Options> = { readonly [Name in keyof O]: ValueOf<O[Name]> } & {
  readonly json: boolean;
};

interface Definition<O extends Options, Context> {
  readonly describe: string;
  readonly options: O;
  /** Each with what it does. */
  readonly examples?: readonly (readonly [command: string, what: string])[];
  readonly run: (given: Given<O>, context: Context) => Promise<ExitCode> | ExitCode;
}

/** A command whose options are only known to itself. */
export interface Command<Context> extends Omit<Definition<Options, Context>, 'run'> {
  readonly run: (values: Readonly<Record<string, unknown>>, context: Context) => Promise<ExitCode> | ExitCode;
}

/** Commands by name. A name may have two words, such as `db copy`. Only the called one is loaded. */
export type Commands<Context> = Readonly<Record<string, () => Promise<Command<Context>>>>;

export interface Program<Context> {
  /** How people call the program. */
  readonly name: string;
  readonly about: string;
  readonly version: string;
  /** Commands by the title of their group. */
  readonly groups: Readonly<Record<string, Commands<Context>>>;
  readonly epilogue: string;
  /** Returns null if the program does not expect this error. */
  readonly exitCodeOf: (error: Error) => ExitCode | null;
  /** Returns the sentence for an error. Default: its message. */
  readonly sentenceOf?: (error: Error) => string;
}

/** Defines a command. The compiler then knows the options that its function gets. */
export function define<const O extends Options, Context>(
  definition: Definition<O, Context>,
): Command<Context> {
  const { run } = definition;
  // `program.ts` reads the values by this table, so they have its types.
  return { ...definition, run: (values, context) => run(values as Given<O>, context) };
}

/** @returns a function that reads a whole number */
export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new Error(`"${text}" is no whole number from ${min} to ${max}`);
  };
}
