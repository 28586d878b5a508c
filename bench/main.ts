/** `npm run bench -- COMMAND`: runs a command of the bench, and always ends the processes that it has started. */
import { existsSync } from 'node:fs';
import { Terminal } from '#shared/cli/terminal.ts';
import { runBench } from './program.ts';
import { Processes } from './run/processes.ts';

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
if (existsSync('/proc/self/schedstat')) {
  const processes = new Processes();
  try {
    const terminal = new Terminal({ stdout: process.stdout, stderr: process.stderr });
    process.exitCode = await runBench(process.argv.slice(2), { terminal, env: process.env, processes });
  } finally {
    await processes.stopAll();
  }
} else {
  process.stderr.write('CPU time is read from /proc/PID/schedstat: run this on Linux\n');
  process.exitCode = 2;
}
