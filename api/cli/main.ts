/** `npm run db` and `npm run files`: arguments in, a table or one JSON document out, and an exit code for scripts. */
import { Terminal } from '#shared/cli/terminal.ts';
import { runCli } from './program.ts';

// Who has seen enough, such as `head`, closes the pipe.
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
