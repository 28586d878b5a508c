/**
 * Loads the SDK scripts of a folder into memory, once, at start. So a request names a script and never a path, and no
 * request reads the disk.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '#shared/configuration.ts';

const FILES_MAX = 50;
const FILE_BYTES_MAX = 5 * 1024 * 1024;
const TOTAL_BYTES_MAX = 20 * 1024 * 1024;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\.(?:c?js|mjs)$/;

interface SdkScript {
  readonly text: Buffer;
  /** Validator of the file, with quotes. */
  readonly etag: string;
}

/** Scripts by file name. null if there is no folder. */
export type SdkScripts = ReadonlyMap<string, SdkScript> | null;

/**
 * @param folder null if none is set
 * @throws ConfigError when the folder cannot be read, has no script in it, or is too large
 */
export async function loadSdkScripts(folder: string | null): Promise<SdkScripts> {
  if (folder === null) return null;
  const names = (await attempt(folder, () => readdir(folder))).filter((name) => NAME.test(name)).sort();
  if (names.length === 0) refuse(`${folder} has no script in it; put formbricks.umd.cjs there`);
  if (names.length > FILES_MAX)
    refuse(`${folder} has more than ${FILES_MAX} scripts; keep only those of the SDK`);
  const scripts = new Map<string, SdkScript>();
  let total = 0;
  for (const name of names) {
    const file = join(folder, name);
    const found = await attempt(file, () => stat(file));
    if (!found.isFile()) continue;
    total += found.size;
    if (found.size > FILE_BYTES_MAX) refuse(`${file} is larger than ${FILE_BYTES_MAX} bytes`);
    if (total > TOTAL_BYTES_MAX) refuse(`the scripts in ${folder} are larger than ${TOTAL_BYTES_MAX} bytes`);
    const text = await attempt(file, () => readFile(file));
    scripts.set(name, { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` });
  }
  return scripts;
}

async function attempt<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    return refuse(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function refuse(problem: string): never {
  throw new ConfigError([`SDK_PATH: ${problem}`]);
}
