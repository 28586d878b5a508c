/** The command `floodgate`: arguments in, a table or one JSON document out, and an exit code that scripts can rely on. */

import { Terminal } from '#shared/cli/terminal.ts';
import { runCli } from './program.ts';

// A reader such as `head` may close the pipe early.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

process.exitCode = await runCli(process.argv.slice(2), {
  terminal: new Terminal({ stdout: process.stdout, stderr: process.stderr }),
  stdin: process.stdin,
  env: process.env,
  now: Date.now,
  async start(settings) {
    Object.assign(process.env, settings);
    await import('#gateway/main.ts');
  },
});
