/** Reads how many file descriptors this process may have open. */
import { readFileSync } from 'node:fs';

/** @returns null if the system does not report it, or there is no limit */
export function openFilesMax(): number | null {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}
