/** The parts that all commands use. */
import type { Argv } from 'yargs';
import { type DatabaseLocation, parseDatabaseUrl, withPassword } from '#api/db/location.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { GlobalOptions, RunCommand } from '#shared/cli/program.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/configuration.ts';

export interface CommandContext {
  readonly terminal: Terminal;
  readonly env: Environment;
  readonly cwd: string;
  readonly clock: Clock;
  readonly run: RunCommand;
}

export type AddCommand = (program: Argv<GlobalOptions>, context: CommandContext) => Argv<GlobalOptions>;

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

export function databaseUrl({ env }: CommandContext): string {
  return env.DATABASE_URL?.trim() || 'file:./data/floodgate.sqlite';
}
