#!/usr/bin/env node
/**
 * `floodgate`: starts the command line on a Node that runs TypeScript as it is. Where the one at hand is older, the
 * project's own Node takes over, so that the command works on Node 20 too.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('./main.ts', import.meta.url));

if (process.features.typescript) await import('./main.ts');
else {
  const node = fileURLToPath(import.meta.resolve('node/bin/node'));
  if (existsSync(node)) {
    const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: 'inherit' });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
    child.on('exit', (code, signal) => {
      if (signal === null) process.exit(code ?? 70);
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name);
      process.kill(process.pid, signal);
    });
  } else {
    process.stderr.write(
      `floodgate needs Node.js 22.18 or later; this is ${process.version}. Install it, or run "npm ci", which brings one.\n`,
    );
    process.exitCode = 2;
  }
}
