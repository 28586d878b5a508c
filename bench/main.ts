/** `npm run bench -- COMMAND`: runs a command of the bench. Its programs end with it, also after a signal. */
import { existsSync } from 'node:fs';
import { Terminal } from '#shared/cli/terminal.ts';
import { runBench } from './program.ts';
import { endAll } from './run/processes.ts';

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => endAll().finally(() => process.exit(130)));
if (existsSync('/proc/self/schedstat')) {
  const terminal = new Terminal({ stdout: process.stdout, stderr: process.stderr });
  process.exitCode = await runBench(process.argv.slice(2), { terminal, env: process.env });
} else {
  process.stderr.write('CPU time is read from /proc/PID/schedstat: run this on Linux\n');
  process.exitCode = 2;
}
