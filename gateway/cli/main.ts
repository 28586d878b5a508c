/** The command `floodgate`: arguments in, a table or one JSON document out, and an exit code that scripts can rely on. */
import { VERSION_TEXT } from './version-text.ts';

const args = process.argv.slice(2);
// The version needs none of the modules that the commands need, which take most of the time.
if (args.length === 1 && args[0] === '--version') process.stdout.write(`${VERSION_TEXT}\n`);
else await runCommand();

async function runCommand(): Promise<void> {
  const [{ Terminal }, { runCli }] = await Promise.all([
    import('#shared/cli/terminal.ts'),
    import('./program.ts'),
  ]);
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  process.exitCode = await runCli(args, {
    terminal: new Terminal({ stdout: process.stdout, stderr: process.stderr }),
    env: process.env,
    now: Date.now,
    async start(settings) {
      Object.assign(process.env, settings);
      await import('#gateway/main.ts');
    },
  });
}
