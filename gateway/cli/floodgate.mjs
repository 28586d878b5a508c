#!/usr/bin/env node
/**
 * `floodgate`: runs the command line on a Node that can. Where the one at hand is older, the one that was installed with
 * us takes over, so that the command works on Node 20 too. Written in what Node 20 understands.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The oldest that the project is tested with. */
const NODE_MIN = [24, 7];
/** A gateway's heap, and one pool of memory for all its threads: see docs/performance.md. */
const GATEWAY_FLAGS = ['--max-semi-space-size=16', '--max-old-space-size=1024'];
const GATEWAY_ENVIRONMENT = { MALLOC_ARENA_MAX: '1' };
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function isNewEnough() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
}

/** Installed next to us or above: in a checkout `node`, with the package the one of this machine's kind; null: none. */
function installedNode() {
  const os = process.platform === 'win32' ? 'win' : process.platform;
  const prefix = os === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  const { resolve } = createRequire(import.meta.url);
  for (const name of ['node', `${prefix}-${os}-${process.arch}`]) {
    try {
      const file = join(dirname(resolve(`${name}/package.json`)), os === 'win' ? 'bin/node.exe' : 'bin/node');
      if (existsSync(file)) return file;
    } catch {
      // Not this one.
    }
  }
  return null;
}

/**
 * Where Node keeps the code it has compiled; the next call starts in half the time. A checkout has a folder of its own.
 * Elsewhere it is the user's cache, because others may write to a common one such as /tmp. Where neither can be written to,
 * Node goes on without.
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

/** In the package the types are gone. */
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
  // Does nothing where NODE_COMPILE_CACHE or NODE_DISABLE_COMPILE_CACHE is set.
  module.enableCompileCache(compileCacheFolder());
  await import(pathToFileURL(main).href);
} else takeOver(node);

function takeOver(node) {
  const flags = startsGateway ? GATEWAY_FLAGS : [];
  const more = startsGateway ? GATEWAY_ENVIRONMENT : {};
  const child = spawn(node, [...flags, main, ...args], {
    env: { NODE_COMPILE_CACHE: compileCacheFolder(), ...more, ...process.env },
    // A gateway whose channel closes shuts down, so it does not outlive us.
    stdio: startsGateway ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
  });
  for (const signal of SIGNALS) {
    // The terminal has sent it to both, and a second one would end the gateway at once.
    const comesTwice = signal === 'SIGINT' && process.stdin.isTTY === true;
    process.on(signal, () => comesTwice || child.kill(signal));
  }
  // npx runs us below a shell that hands no signal on. When that is gone, so is whoever wanted us.
  const parent = process.ppid;
  if (process.env.npm_command === 'exec')
    setInterval(() => process.ppid === parent || child.kill('SIGTERM'), 500).unref();
  child.on('error', (error) => {
    process.stderr.write(`floodgate: ${node} cannot be started: ${error.message}\n`);
    process.exit(70);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 70);
    for (const name of SIGNALS) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}
