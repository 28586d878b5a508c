/** The parts that all commands use. */
import { type DatabaseLocation, parseDatabaseUrl, withPassword } from '#api/db/location.ts';
import { type Command, define, type Given, type Options } from '#shared/cli/command.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/configuration.ts';

export interface CommandContext {
  readonly terminal: Terminal;
  readonly env: Environment;
  readonly cwd: string;
  readonly clock: Clock;
}

/** Defines a command. */
export function command<const O extends Options>(definition: {
  readonly describe: string;
  readonly options: O;
  readonly examples?: readonly (readonly [command: string, what: string])[];
  readonly run: (given: Given<O>, context: CommandContext) => Promise<ExitCode> | ExitCode;
}): Command<CommandContext> {
  return define(definition);
}

/** The database of the API. */
export const DATABASE = { variable: 'DATABASE_URL', default: 'file:./data/floodgate.sqlite' } as const;

/**
 * @param option the name of the option, for messages
 * @throws CommandError
 */
export function databaseAt(option: string, value: string, { env, cwd }: CommandContext): DatabaseLocation {
  try {
    return withPassword(parseDatabaseUrl(value, cwd), env.DATABASE_PASSWORD?.trim() ?? '');
  } catch (error) {
    throw new CommandError(`${option}: ${(error as Error).message}`, EXIT.usage);
  }
}
