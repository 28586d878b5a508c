/** All commands of the bench under one name. */
import yargs, { type Argv } from 'yargs';
import { type Start, UsageError } from './command.ts';
import { ABUSE } from './commands/abuse.ts';
import { LADDER } from './commands/ladder.ts';
import { LOG } from './commands/log.ts';
import { PEERS_COMMAND } from './commands/peers.ts';
import { SOAK } from './commands/soak.ts';

const COMMANDS = [PEERS_COMMAND, LADDER, ABUSE, SOAK, LOG];

/** @throws UsageError for wrong arguments */
export async function runCommand(argv: readonly string[], start: Start): Promise<void> {
  let program: Argv = yargs([...argv])
    .scriptName('npm run bench --')
    .strict()
    .help()
    .version(false)
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      throw error ?? new UsageError(`${message}. See npm run bench -- --help`);
    });
  for (const add of COMMANDS) program = add(program, start);
  try {
    await program.parseAsync();
  } catch (error) {
    // yargs wraps the errors that `coerce` of an option throws.
    if (error instanceof Error && error.name === 'YError') throw new UsageError(error.message);
    throw error;
  }
}
