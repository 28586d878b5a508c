/** Makes a release in a temporary folder. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Owner } from './gateway.ts';
import { projectRoot } from './process.ts';
import { makeFolder, removeFolder } from './temporary-folder.ts';

const run = promisify(execFile);

interface Circumstances {
  readonly umask?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** The newest version of npm's packages without known security holes, as docs/releasing.md installs it. */
export const RELEASED_NODE = '24.22.3';

/** One download serves all releases of a process. */
let installed: Promise<string> | null = null;

/** Installs the Node.js that a release delivers. @returns its program */
export function releasedNode(owner: Owner): Promise<string> {
  if (installed !== null) return installed;
  const folder = makeFolder();
  owner.teardown(() => removeFolder(folder));
  const name = `node-linux-${process.arch}`;
  installed = run('npm', [
    'install',
    '--prefix',
    folder,
    '--no-audit',
    '--no-fund',
    `${name}@${RELEASED_NODE}`,
  ]).then(() => join(folder, 'node_modules', name, 'bin/node'));
  return installed;
}

/** @returns the folder with the files */
export async function makeRelease(
  owner: Owner,
  { umask = '022', env = {} }: Circumstances = {},
): Promise<string> {
  const folder = makeFolder();
  owner.teardown(() => removeFolder(folder));
  const command = `umask ${umask} && exec "$0" "$@"`;
  const release = [join(projectRoot, 'package/release/main.ts'), '--out', folder];
  const args = [process.execPath, ...release, '--node', await releasedNode(owner)];
  await run('sh', ['-c', command, ...args], {
    cwd: projectRoot,
    env: { ...process.env, ...env },
    maxBuffer: 16 << 20,
  });
  return folder;
}
