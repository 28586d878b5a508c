/** What the commands share. */
import type { Argv } from 'yargs';
import { type DatabaseLocation, parseDatabaseUrl, withPassword } from '#api/db/location.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/configuration.ts';

/** Options of every command. */
export interface GlobalOptions {
  readonly json: boolean;
}

export interface CommandContext {
  readonly terminal: Terminal;
  /** The API's settings. */
  readonly env: Environment;
  /** What relative paths are relative to. */
  readonly cwd: string;
  readonly clock: Clock;
  /** Runs a command's body; what it throws ends with its exit code and one sentence. */
  readonly run: (body: () => Promise<ExitCode>) => Promise<void>;
}

/** Adds one command. */
export type AddCommand = (program: Argv<GlobalOptions>, context: CommandContext) => Argv<GlobalOptions>;

/**
 * @param option as the caller wrote it, for messages
 * @throws CommandError
 */
export function databaseAt(option: string, value: string, { env, cwd }: CommandContext): DatabaseLocation {
  try {
    return withPassword(parseDatabaseUrl(value, cwd), env.DATABASE_PASSWORD?.trim() ?? '');
  } catch (error) {
    throw new CommandError(`${option}: ${(error as Error).message}`, EXIT.usage);
  }
}

/** That of the API, unless an option says something else. */
export function databaseUrl({ env }: CommandContext): string {
  return env.DATABASE_URL?.trim() || 'file:./data/floodgate.sqlite';
}
