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

/** @returns the folder with the files */
export async function makeRelease(
  owner: Owner,
  { umask = '022', env = {} }: Circumstances = {},
): Promise<string> {
  const folder = makeFolder();
  owner.teardown(() => removeFolder(folder));
  const command = `umask ${umask} && exec "$0" "$@"`;
  const args = [process.execPath, join(projectRoot, 'package/release/main.ts'), '--out', folder];
  await run('sh', ['-c', command, ...args], {
    cwd: projectRoot,
    env: { ...process.env, ...env },
    maxBuffer: 16 << 20,
  });
  return folder;
}
