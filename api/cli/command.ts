/** The parts that all commands use. */
import { existsSync } from 'node:fs';
import { awaitDatabase, openDatabase } from '#api/db/database.ts';
import { type DatabaseLocation, parseDatabaseUrl, withPassword } from '#api/db/location.ts';
import { refuseOtherSchema } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
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

/** Opens a database that exists and has the schema of this version for the work, and closes it. */
export async function withDatabase<T>(
  location: DatabaseLocation,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  if (location.kind === 'file' && !existsSync(location.path))
    throw new CommandError(`cannot open ${location.path}: there is no such file`, EXIT.unreachable);
  const db = openDatabase(location);
  try {
    await awaitDatabase(db, 0);
    await refuseOtherSchema(db);
    return await work(db);
  } finally {
    await db.destroy();
  }
}
