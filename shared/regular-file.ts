import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/**
 * Reads a text file. Anything but a regular file is an error, because reading a pipe would wait for its writer, and the
 * whole process with it.
 *
 * @throws Error with a `code` as readFileSync
 */
export function readRegularFile(file: string): string {
  // Without O_NONBLOCK, opening a pipe waits too.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const kind = fstatSync(descriptor);
    if (!kind.isFile()) {
      const code = kind.isDirectory() ? 'EISDIR' : 'not a regular file';
      throw Object.assign(new Error(`${file}: ${code}`), { code });
    }
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}
