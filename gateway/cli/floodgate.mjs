#!/usr/bin/env node
/**
 * The program `floodgate`. If the installed Node.js is too old for the command line, this file runs it with the Node.js
 * that was installed together with Floodgate. So the command also works with Node 20, and this file uses only features
 * of Node 20.
 */
import { accessSync, constants, existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The oldest version of Node.js that the project is tested with. */
const NODE_MIN = [24, 7];
/** Limit the heap of a gateway, and let all its threads share one pool of memory (docs/performance.md). */
const GATEWAY_FLAGS = ['--max-semi-space-size=16', '--max-old-space-size=1024'];
const GATEWAY_ENVIRONMENT = { MALLOC_ARENA_MAX: '1' };

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
}

/**
 * Finds the Node.js that was installed together with Floodgate: the package for this operating system and processor.
 *
 * @returns null if there is none
 */
function installedNode() {
  const os = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = os === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  const { resolve } = createRequire(import.meta.url);
  try {
    const folder = dirname(resolve(`${prefix}-${os}-${process.arch}/package.json`));
    const file = join(folder, os === 'win' ? 'bin/node.exe' : 'bin/node');
    return existsSync(file) ? file : null;
  } catch {
    // This package is not installed.
    return null;
  }
}

/**
 * Returns the folder in which Node.js keeps compiled code, so that the next call starts in half the time. A checkout
 * has its own folder. Otherwise it is in the user's cache, because other users could write to a common folder such as
 * /tmp. If the folder cannot be written to, Node.js works without it.
 */
function compileCacheFolder() {
  const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
  try {
    accessSync(modules, constants.W_OK);
    return join(modules, '.cache/node');
  } catch {
    return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'floodgate');
  }
}

/** The published package has JavaScript files instead of TypeScript. */
const compiled = fileURLToPath(new URL('./main.js', import.meta.url));
const main = existsSync(compiled) ? compiled : fileURLToPath(new URL('./main.ts', import.meta.url));
const args = process.argv.slice(2);
const startsGateway = args[0] === 'start' && !args.includes('--help') && !args.includes('-h');
const node = isNewEnough() ? process.execPath : installedNode();

if (node === null) {
  process.stderr.write(
    `floodgate needs Node.js ${NODE_MIN.join('.')} or later; this is ${process.version}. Install it, or install floodgate with its optional dependencies, which bring one.\n`,
  );
  process.exitCode = 2;
} else if (node === process.execPath && !startsGateway) {
  // This does nothing if NODE_COMPILE_CACHE or NODE_DISABLE_COMPILE_CACHE is set.
  module.enableCompileCache(compileCacheFolder());
  await import(pathToFileURL(main).href);
} else {
  const { takeOver } = await import('./take-over.mjs');
  const env = {
    NODE_COMPILE_CACHE: compileCacheFolder(),
    ...(startsGateway ? GATEWAY_ENVIRONMENT : {}),
    ...process.env,
  };
  takeOver({
    node,
    args: [...(startsGateway ? GATEWAY_FLAGS : []), main, ...args],
    env,
    isGateway: startsGateway,
  });
}
