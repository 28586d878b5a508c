/**
 * Files in a folder of this machine.
 *
 *   objects/3f/3f9a…   finished files; the name is the SHA-256 of the key
 *   incoming/…         files that are being written
 *
 * No text of a caller ever becomes part of a path: hashing also spares us reserved names, case-insensitive and
 * normalizing file systems, and names longer than 255 bytes. A file is written to `incoming`, flushed to the medium and
 * then renamed, so a file that can be seen is complete and survives a power cut.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Signer } from '#api/auth/signer.ts';
import { newUuid, type Random } from '#api/values/ids.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { GRANT_SECONDS, type Storage, StorageUnavailable, type StoredFile } from './storage.ts';
import { grantFields } from './upload-grant.ts';

export interface DiskOptions {
  /** An absolute path. The folder is created if it is missing. */
  readonly folder: string;
  /** Public address of the API, without a slash at the end. */
  readonly publicUrl: string;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly random: Random;
}

/** The process that wrote an older file in `incoming` has died. */
const LEFTOVER_MS: Millis = 3_600_000;

/** Creates the store. It opens or changes no file before `check`. */
export function createDiskStorage({ folder, publicUrl, signer, clock, random }: DiskOptions): Storage {
  const objects = join(folder, 'objects');
  const incoming = join(folder, 'incoming');
  const pathOf = (key: string): string => {
    const hash = createHash('sha256').update(key).digest('hex');
    return join(objects, hash.slice(0, 2), hash);
  };
  /** @throws StorageUnavailable */
  const asked = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw unavailable(folder, error);
    });
  /** @returns null if the file is missing @throws StorageUnavailable */
  const found = <T>(work: Promise<T>): Promise<T | null> =>
    asked(
      work.catch((error: unknown) => {
        if (isCode(error, 'ENOENT')) return null;
        throw error;
      }),
    );

  const write = async (path: string, file: Buffer): Promise<void> => {
    const temporary = join(incoming, newUuid(random));
    try {
      await writeFile(temporary, file, { flag: 'wx', mode: 0o600, flush: true });
      const parent = dirname(path);
      if ((await mkdir(parent, { recursive: true })) !== undefined) await syncFolder(objects);
      await rename(temporary, path);
      await syncFolder(parent);
    } finally {
      await rm(temporary, { force: true });
    }
  };

  return {
    async grant(object) {
      const workspaceId = object.key.split('/', 1)[0] ?? '';
      const expiresAt = clock() + GRANT_SECONDS * 1_000;
      const url = `${publicUrl}/api/v1/client/${workspaceId}/storage/upload`;
      return { url, fields: grantFields({ ...object, expiresAt }, signer) };
    },

    put: ({ key }, file) => asked(write(pathOf(key), file)),

    async find(key) {
      const stats = await found(stat(pathOf(key)));
      return stats === null ? null : versionOf(stats);
    },

    async read(key, { etag }, { first, last }) {
      const file = await found(open(pathOf(key)));
      if (file === null) return null;
      if (versionOf(await file.stat()).etag === etag)
        return file.createReadStream({ start: first, end: last });
      await file.close();
      return null;
    },

    delete: (key) => asked(rm(pathOf(key), { force: true })),

    async check() {
      await asked(mkdir(incoming, { recursive: true }));
      await asked(removeLeftovers(incoming, clock() - LEFTOVER_MS));
      const probe = pathOf('probe');
      await asked(write(probe, Buffer.from('Can this folder be written to?')));
      // Another process that starts may have deleted it.
      await asked(rm(probe, { force: true }));
    },

    async close() {},
  };
}

/** Deletes what dead processes left. */
async function removeLeftovers(folder: string, before: Millis): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    // Another process may have published the file meanwhile.
    const stats = await stat(path).catch(() => null);
    if (stats !== null && stats.mtimeMs < before) await rm(path, { force: true });
  }
}

/** Flushes a folder. A name is durable only when its folder is on the medium too. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function versionOf({ size, mtimeMs }: { readonly size: number; readonly mtimeMs: Millis }): StoredFile {
  return { size, etag: `"${size.toString(16)}-${Math.round(mtimeMs * 1_000).toString(16)}"` };
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function unavailable(folder: string, error: unknown): StorageUnavailable {
  const reason = error instanceof Error ? error.message : String(error);
  const advice = isCode(error, 'ENOSPC')
    ? 'free some space there, or give a folder on a larger disk'
    : 'give a folder that this user may write to';
  return new StorageUnavailable(
    'disk_error',
    `STORAGE_PATH: cannot use ${folder} (${reason}); ${advice}`,
    error,
  );
}
