#!/usr/bin/env node
/**
 * `floodgate`: starts the command line on a Node that runs TypeScript as it is. Where the one at hand is older, the
 * project's own Node takes over, so that the command works on Node 20 too.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Installed for development, next to us or above; null where it is not. */
function bundledNode() {
  try {
    const file = join(dirname(createRequire(import.meta.url).resolve('node/package.json')), 'bin/node');
    return existsSync(file) ? file : null;
  } catch {
    return null;
  }
}

const main = fileURLToPath(new URL('./main.ts', import.meta.url));

if (process.features.typescript) await import('./main.ts');
else {
  const node = bundledNode();
  if (node !== null) {
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
