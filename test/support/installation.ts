/** Installs a fresh copy of the project as users do, and starts it in the same way. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { freePort } from './ports.ts';
import { projectRoot } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The folder of the project's own Node.js, without the other commands of its packages. */
const node = dirname(realpathSync(join(projectRoot, 'node_modules/.bin/node')));

/** The caller's environment, which may be needed to reach the registry, without the variables of npm and tap. */
export function installing(folder: string): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && !/^(?:npm_|TAP|NODE_OPTIONS|_TAPJS)/.test(name),
  );
  return {
    ...(Object.fromEntries(kept) as Record<string, string>),
    PATH: `${node}:${process.env.PATH}`,
    // The cache is its own, because one of the steps cleans it.
    npm_config_cache: join(folder, 'cache'),
  };
}

/** The files of the project as a fresh clone has them, changes that are not committed included. */
export function clone(t: Test): string {
  const folder = temporaryFolder(t);
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0')) {
    const source = join(projectRoot, file);
    if (file === '' || !existsSync(source)) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(source, join(folder, file));
  }
  return folder;
}

/** Starts the product and asks it through the gateway. @returns what it wrote */
export async function serves(
  t: Test,
  [program = '', ...args]: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  ports: Readonly<Record<string, string>>,
): Promise<string> {
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  t.teardown(async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      process.kill(-child.pid, 'SIGTERM');
    }
    await ended;
  });
  const ready = new Promise<void>((resolve) => {
    const look = (chunk: Buffer): void => {
      text += chunk.toString();
      if (text.includes('Gateway ready')) resolve();
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
  });
  await Promise.race([ready, ended]);
  t.match(text, 'Gateway ready');
  const reply = await fetch(`http://127.0.0.1:${ports.GATEWAY_PORT}/`, { headers: { accept: 'text/html' } });
  t.equal(reply.status, 200, text);
  t.match(await reply.text(), 'This service is ready');
  return text;
}

export async function freePorts(): Promise<Record<string, string>> {
  return {
    GATEWAY_PORT: String(await freePort()),
    GATEWAY_ADMIN_PORT: String(await freePort()),
    API_PORT: String(await freePort()),
    GATEWAY_DRAIN_TIMEOUT_MS: '1000',
  };
}
