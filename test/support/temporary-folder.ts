/**
 * Folders of the tests' own, below the system's temporary one. A folder goes with the test that owns it; what a run that
 * was killed leaves behind goes with the next run, as the names tell which process made them.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Owner } from './gateway.ts';

let isSwept = false;

export function temporaryFolder(owner: Owner): string {
  const folder = makeFolder();
  owner.teardown(() => removeFolder(folder));
  return folder;
}

/** For those who have no owner to ask. They call `removeFolder`. */
export function makeFolder(): string {
  if (!isSwept) sweep();
  isSwept = true;
  return mkdtempSync(join(tmpdir(), `floodgate-${process.pid}-`));
}

export function removeFolder(folder: string): void {
  // A program that is just ending, such as a browser, may still write a file or two.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^floodgate-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      removeFolder(join(tmpdir(), name));
    } catch {
      // Somebody else's, or in use after all: not worth a failed test.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Anything but "no such process" means that there is one.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
