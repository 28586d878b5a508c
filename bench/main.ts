/**
 * `npm run bench -- COMMAND`: runs a command of the bench, and always ends the processes that it has started.
 *
 * Exit codes: 0 success, 1 a check has failed, 2 wrong arguments or a missing program.
 */
import { existsSync } from 'node:fs';
import { UsageError } from './command.ts';
import { runCommand } from './program.ts';
import { Processes } from './run/processes.ts';

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
try {
  await runCommand(process.argv.slice(2), async (_, body) => {
    if (!existsSync('/proc/self/schedstat'))
      throw new UsageError('CPU time is read from /proc/PID/schedstat: run this on Linux');
    const processes = new Processes();
    try {
      if (!(await body(processes))) process.exitCode = 1;
    } finally {
      await processes.stopAll();
    }
  });
} catch (error) {
  const isUsage = error instanceof UsageError;
  process.stderr.write(`${isUsage ? error.message : (error as Error).stack}\n`);
  process.exitCode = isUsage ? 2 : 1;
}
