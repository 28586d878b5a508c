/**
 * Creates folders for tests below the system's temporary one. A folder is removed with the test that owns it. If a run
 * is killed, the next run removes its folders: their names have the id of the process.
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

/** Creates a folder without a test that owns it. Callers must call `removeFolder`. */
export function makeFolder(): string {
  if (!isSwept) sweep();
  isSwept = true;
  return mkdtempSync(join(tmpdir(), `floodgate-${process.pid}-`));
}

export function removeFolder(folder: string): void {
  // A program that is about to end, such as a browser, may still write a file.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^floodgate-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || isRunning(Number(pid))) continue;
    try {
      removeFolder(join(tmpdir(), name));
    } catch {
      // The folder belongs to another user or is still in use, which is no reason to fail a test.
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Any error but "no such process" means that the process exists.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
