/** The version of what is built. It is stated in package.json; the package for npm repeats it. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const MANIFESTS = ['package.json', 'package/package.json'];

/**
 * A version in development, such as 0.1.0-dev, is followed by its commit: 0.1.0-dev+9c71cb3812. It ends in `-dirty` if
 * files were changed since.
 *
 * @param root folder of the project; without a repository in it, as in an archive of the sources, no commit is known
 */
export function builtVersion(root: string): string {
  const versions = MANIFESTS.map((file) => JSON.parse(readFileSync(join(root, file), 'utf8')).version);
  const [version = ''] = versions;
  if (versions.some((other) => other !== version))
    throw new Error(`${MANIFESTS.join(', ')} name different versions: write the same one into each`);
  if (!version.endsWith('-dev') || !existsSync(join(root, '.git'))) return version;
  const commit = git(root, 'describe', '--always', '--dirty', '--abbrev=10', '--exclude=*');
  return `${version}+${commit}`;
}

/** @returns what git prints, without the line break at its end */
export function git(root: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}
