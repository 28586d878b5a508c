/** Another version of Floodgate as a peer, to see whether the gateway has become more expensive. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ROOT } from '#bench/run/programs.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { floodgateIn } from './floodgate.ts';
import type { Peer } from './peer.ts';

/** @param name a folder or a commit; a commit is checked out into a worktree until the bench ends */
export function versionAt(name: string): Peer {
  const root = existsSync(join(name, 'gateway', 'main.ts')) ? resolve(name) : checkOut(name);
  return floodgateIn(root, name, `Floodgate, ${name}`);
}

function checkOut(commit: string): string {
  const parent = mkdtempSync(join(tmpdir(), 'floodgate-compare-'));
  const root = join(parent, 'tree');
  const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  process.once('exit', () => {
    git('worktree', 'remove', '--force', root);
    rmSync(parent, { recursive: true, force: true });
  });
  const { status, stderr } = git('worktree', 'add', '--detach', root, commit);
  if (status !== 0)
    throw new CommandError(
      `${commit} is neither a folder with a gateway nor a commit: ${stderr.trim()}`,
      EXIT.usage,
    );
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return root;
}
