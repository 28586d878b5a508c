/** `npm run db`, `npm run files` and `npm run people`. The output is a table or one JSON document, and the exit code is for scripts. */
import { Terminal } from '#shared/cli/terminal.ts';
import { runCli } from './program.ts';

// A reader such as `head` closes the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runCli(process.argv.slice(2), {
  terminal: new Terminal({ stdout: process.stdout, stderr: process.stderr }),
  env: process.env,
  cwd: process.cwd(),
  clock: Date.now,
});
