/**
 * Programs of npm that tests start. They are too large for everybody who works here, so the runner installs them when a
 * test needs them. They stay in node_modules/.cache, until a row here or `npm ci` removes them.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from '#test/support/gateway.ts';
import { installing } from '#test/support/installation.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Packages by program, with exact versions. */
export const NPM_PROGRAMS = {
  'node-red': ['node-red@5.0.7'],
  'socket.io': ['socket.io@4.8.4', 'socket.io-client@4.8.4'],
  verdaccio: ['verdaccio@6.10.4'],
} as const;

export type NpmProgram = keyof typeof NPM_PROGRAMS;

export function isNpmProgram(program: string): program is NpmProgram {
  return Object.hasOwn(NPM_PROGRAMS, program);
}

export function isInstalled(program: NpmProgram): boolean {
  // npm writes this file last.
  return existsSync(join(cacheOf(program), 'node_modules/.package-lock.json'));
}

/** The caller checks afterwards whether it is installed. npm writes the reason to stderr. */
export async function installFromNpm(program: NpmProgram, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  const folder = cacheOf(program);
  mkdirSync(folder, { recursive: true });
  // Verdaccio asks for it by a tag that not every registry has.
  const overrides = { 'node-fetch': '2.7.0' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, overrides }));
  const { npm_config_cache: _, ...env } = installing(folder);
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...NPM_PROGRAMS[program]];
  const child = spawn('npm', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const stop = (): void => void child.kill();
  signal?.addEventListener('abort', stop);
  await once(child, 'close');
  signal?.removeEventListener('abort', stop);
}

/** Returns a folder of the test, whose node_modules has the program. @throws Error if it is not installed */
export function folderWith(owner: Owner, program: NpmProgram): string {
  if (!isInstalled(program))
    throw new Error(`${program} is not installed: run this file with "npm test -- FILE", which installs it`);
  const folder = temporaryFolder(owner);
  symlinkSync(join(cacheOf(program), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

function cacheOf(program: NpmProgram): string {
  return join(projectRoot, 'node_modules/.cache/programs', NPM_PROGRAMS[program].join('+'));
}
