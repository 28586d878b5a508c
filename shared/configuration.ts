/**
 * Reads settings from environment variables. A table has every variable with its default and meaning, and a test
 * compares the documentation with it. All mistakes are reported together.
 */
import { editDistance } from './edit-distance.ts';

export interface Variable {
  readonly name: string;
  /** Value if the variable is unset or blank. Absent if it has none. */
  readonly default?: string;
  readonly meaning: string;
}

/** A variable that the documentation of another project describes. */
type DefaultedVariable = Pick<Variable, 'name' | 'default'>;

/** Both programs read this variable, so its values are the same for both. They may start with one environment. */
export const LOG_LEVEL = {
  name: 'LOG_LEVEL',
  default: 'info',
  meaning: 'lowest level that is logged: `trace`, `debug`, `info`, `warn`, `error`, `fatal`, or `silent`',
} as const satisfies Variable;
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type Environment = Readonly<Record<string, string | undefined>>;

/** All mistakes in the environment. The message has one line for each. */
export class ConfigError extends Error {
  /** One sentence for each mistake, which begins with the name of the variable. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.length === 1 ? problems[0] : ['several settings are wrong:', ...problems].join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** One method for each type. For a wrong value it records the mistake and returns some value of the right type. */
export interface SettingsReader<Name extends string> {
  /** Returns the trimmed value; the default if the variable is unset or blank. */
  text(name: Name): string;
  integer(name: Name, min: number, max: number): number;
  flag(name: Name): boolean;
  /** Returns a number from 0 to 1. */
  share(name: Name): number;
  /** Returns one of the given words. Case is ignored. */
  choice<const Choice extends string>(name: Name, choices: readonly [Choice, ...Choice[]]): Choice;
  /** @param parse throws an Error with the mistake and the correct form, without the name of the variable */
  parse<T>(name: Name, fallback: T, parse: (value: string) => T): T;
  /** Records a mistake that involves several values. */
  refuse(name: Name, problem: string): void;
}

/**
 * @param env usually process.env
 * @param build reads every setting and returns the configuration
 * @throws ConfigError with one sentence per mistake
 */
export function readSettings<const Table extends readonly DefaultedVariable[], Config>(
  variables: Table,
  env: Environment,
  build: (read: SettingsReader<Table[number]['name']>) => Config,
): Config {
  const problems: string[] = [];
  const config = build(settingsReader(variables, env, problems));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function settingsReader<Name extends string>(
  variables: readonly (DefaultedVariable & { readonly name: Name })[],
  env: Environment,
  problems: string[],
): SettingsReader<Name> {
  const defaults = new Map(variables.map((variable) => [variable.name, variable.default]));
  const text = (name: Name): string => env[name]?.trim() || (defaults.get(name) ?? '');
  const refuse = (name: Name, problem: string): void => {
    problems.push(`${name}: ${problem}`);
  };
  return {
    text,
    refuse,
    integer(name, min, max) {
      const value = text(name);
      const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
      if (number >= min && number <= max) return number;
      refuse(name, `"${value}" is not a whole number from ${min} to ${max}`);
      return min;
    },
    flag(name) {
      const value = text(name);
      if (value !== '0' && value !== '1') refuse(name, `"${value}" is neither 0 nor 1`);
      return value === '1';
    },
    share(name) {
      const number = Number(text(name));
      if (number >= 0 && number <= 1) return number;
      refuse(name, 'it must be a number from 0 to 1, such as 0.1');
      return 1;
    },
    choice(name, choices) {
      const value = text(name).toLowerCase();
      const choice = choices.find((known) => known === value);
      if (choice === undefined) refuse(name, `"${value}" is not one of ${choices.join(', ')}`);
      return choice ?? choices[0];
    },
    parse(name, fallback, parse) {
      try {
        return parse(text(name));
      } catch (error) {
        refuse(name, error instanceof Error ? error.message : String(error));
        return fallback;
      }
    },
  };
}

const TYPOS_MAX = 3;

/**
 * Finds misspelt variables. Those that Kubernetes sets for a service with the name of the prefix are none.
 *
 * @param prefix that no other program uses, without its underscore
 * @returns one sentence for each variable that begins with the prefix and is no setting
 */
export function unknownVariables(
  prefix: string,
  variables: readonly DefaultedVariable[],
  env: Environment,
): string[] {
  const known = variables.map(({ name }) => name);
  const serviceLink = new RegExp(`^${prefix}_(?:SERVICE|PORT)_`);
  return Object.entries(env)
    .filter(([name, value]) => name.startsWith(`${prefix}_`) && value?.trim() && !serviceLink.test(name))
    .map(([name]) => name)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const close = known.find(
        (one) =>
          editDistance(name, one) <= TYPOS_MAX || one.startsWith(`${name}_`) || name.startsWith(`${one}_`),
      );
      const hint = close === undefined ? 'unset it' : `did you mean ${close}?`;
      return `${name} is not a setting and has no effect; ${hint}`;
    });
}
