/**
 * Files in a folder of this machine.
 *
 *   objects/3f/3f9a…   finished files; the name is the SHA-256 of the key
 *   incoming/…         uploads on their way; what a crash leaves there is swept after an hour
 *
 * No text of a caller ever becomes part of a path: hashing also spares us reserved names, case-insensitive and
 * normalizing file systems, and names longer than 255 bytes. An upload is written to `incoming`, flushed to the medium
 * and then gets its name by a hard link, so a file that can be seen is complete and survives a power cut. Symbolic links are not followed.
 */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { link, lstat, mkdir, open, opendir, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Signer } from '#api/auth/signer.ts';
import { newUuid, type Random } from '#api/values/ids.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import {
  GRANT_SECONDS,
  type NewObject,
  type Received,
  type Storage,
  StorageUnavailable,
  type StoredFile,
  UploadAborted,
} from './storage.ts';
import { grantFields } from './upload-policy.ts';

interface DiskOptions {
  /** An absolute path. The folder is created if it is missing. */
  readonly folder: string;
  /** Public address of the API, without a slash at the end. */
  readonly publicUrl: string;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Age after which an upload without writes is deleted. Its process has died, because no sender may be silent for so
 * long.
 */
const LEFTOVER_MS: Millis = 3_600_000;
const ONLY_OWNER = 0o600;

/** Creates the store. It opens or changes no file before `check`. */
export function createDiskStorage({ folder, publicUrl, signer, clock, random }: DiskOptions) {
  const objects = join(folder, 'objects');
  const incoming = join(folder, 'incoming');
  const pathOf = (key: string): string => {
    const hash = createHash('sha256').update(key).digest('hex');
    return join(objects, hash.slice(0, 2), hash);
  };
  /** @returns null if the file is missing @throws StorageUnavailable, UploadAborted */
  const ask = async <T>(work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      // ELOOP: a symbolic link, which is not one of our files.
      if (isCode(error, 'ENOENT') || isCode(error, 'ELOOP')) return null;
      throw error instanceof UploadAborted ? error : unavailable(folder, error);
    }
  };

  const receive = async ({ key, bytesMax }: NewObject, file: AsyncIterable<Buffer>): Promise<Received> => {
    const temporary = join(incoming, newUuid(random));
    try {
      const size = await writeWhole(temporary, file, bytesMax);
      const path = pathOf(key);
      const parent = dirname(path);
      if ((await mkdir(parent, { recursive: true })) !== undefined) await syncFolder(dirname(parent));
      // This is atomic, and fails if there is a file.
      await link(temporary, path);
      await syncFolder(parent);
      return { kind: 'stored', size, etag: versionOf(await lstat(path)).etag };
    } catch (error) {
      if (error instanceof TooLarge) return { kind: 'tooLarge' };
      if (error instanceof UploadAborted) throw error;
      if (isCode(error, 'EEXIST')) return { kind: 'exists' };
      throw unavailable(folder, error);
    } finally {
      // If this fails, the sweep removes the file later.
      await rm(temporary, { force: true }).catch(() => undefined);
    }
  };
  const remove = async (key: string): Promise<void> => {
    const path = pathOf(key);
    await ask(async () => {
      await unlink(path);
      await syncFolder(dirname(path));
    });
  };

  return {
    receive,
    delete: remove,

    async grant(object) {
      const workspaceId = object.key.split('/', 1)[0] ?? '';
      const expiresAt = clock() + GRANT_SECONDS * 1000;
      const url = `${publicUrl}/api/v1/client/${workspaceId}/storage/upload`;
      return { url, fields: grantFields(object, expiresAt, signer) };
    },

    async put({ key, contentType }, file) {
      await remove(key);
      await receive({ key, contentType, bytesMax: file.length }, whole(file));
    },

    async find(key) {
      const found = await ask(() => lstat(pathOf(key)));
      return found?.isFile() ? versionOf(found) : null;
    },

    read: (key, { etag }, { first, last }) =>
      ask(async () => {
        const file = await open(pathOf(key), constants.O_RDONLY | constants.O_NOFOLLOW);
        if (versionOf(await file.stat()).etag === etag)
          return file.createReadStream({ start: first, end: last });
        await file.close();
        return null;
      }),

    async check() {
      try {
        await mkdir(objects, { recursive: true });
        await mkdir(incoming, { recursive: true });
        const probe = join(incoming, newUuid(random));
        await writeFile(probe, 'Can this folder be written to?', { mode: ONLY_OWNER });
        await link(probe, `${probe}.link`);
        await unlink(`${probe}.link`);
        await unlink(probe);
      } catch (error) {
        throw unavailable(folder, error);
      }
    },

    async sweep() {
      try {
        await removeLeftovers(incoming, clock() - LEFTOVER_MS);
      } catch (error) {
        throw unavailable(folder, error);
      }
    },

    async close() {},
  } satisfies Storage;
}

async function* whole(file: Buffer): AsyncGenerator<Buffer> {
  yield file;
}

class TooLarge extends Error {}

/** Writes a file. It is on the medium when this resolves. @returns its size. @throws TooLarge, UploadAborted */
async function writeWhole(path: string, file: AsyncIterable<Buffer>, bytesMax: number): Promise<number> {
  const handle = await open(path, 'wx', ONLY_OWNER);
  try {
    await handle.writeFile(bounded(file, bytesMax));
    await handle.sync();
    return (await handle.stat()).size;
  } finally {
    await handle.close();
  }
}

/** Distinguishes failures of the sender from failures of the disk. */
async function* bounded(file: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of file) {
      size += chunk.length;
      if (size > bytesMax) throw new TooLarge();
      yield chunk;
    }
  } catch (error) {
    throw error instanceof TooLarge ? error : new UploadAborted(error);
  }
}

/** Flushes a folder. A name is durable only when its folder is on the medium too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function versionOf({ size, mtimeMs }: Stats): StoredFile {
  const etag = `"${size.toString(16)}-${Math.round(mtimeMs * 1000).toString(16)}"`;
  return { size, etag, modifiedAt: Math.floor(mtimeMs) };
}

async function removeLeftovers(folder: string, before: Millis): Promise<void> {
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name);
    try {
      const { mtimeMs } = await lstat(path);
      if (mtimeMs < before) await rm(path, { recursive: true, force: true });
    } catch (error) {
      // Another process has published or swept it meanwhile.
      if (!isCode(error, 'ENOENT')) throw error;
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function unavailable(folder: string, error: unknown): StorageUnavailable {
  const reason = error instanceof Error ? error.message : String(error);
  const advice =
    isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT')
      ? 'free some space there, or give a folder on a larger disk'
      : 'give a folder that this user may write to, on a file system with hard links';
  return new StorageUnavailable(
    'disk_error',
    `STORAGE_PATH: cannot use ${folder} (${reason}); ${advice}`,
    error,
  );
}
