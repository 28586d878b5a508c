/**
 * Removes files that have lost their owner. Whoever deletes a response or a survey calls `removeFilesOf` after the
 * commit, so that its files go at once; the sweep finds what that left, because S3 was away or the process ended, and
 * what was deleted along other ways. An object is deleted before its row, so none is ever forgotten; a failure is logged
 * and leaves the row for the next sweep.
 */
import type { Context } from '#api/context.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import {
  deleteFile,
  type File,
  listFilesOf,
  listOrphans,
  listUnsettled,
  markStored,
  type Owner,
} from './files.ts';
import { StorageUnavailable } from './storage.ts';

/** Removed while the caller waits; the rest is left to the sweep. */
const AT_ONCE_MAX = 100;
const SWEEP_MAX = 1_000;
const PARALLEL = 8;
/** By then an upload has ended, whatever became of it. */
const UNSETTLED_AFTER_MS: Millis = 3_600_000;

export interface RemovalLog {
  error(fields: object, message: string): void;
}

type Parts = Pick<Context, 'db' | 'storage' | 'clock'>;

/** Never rejects: what it is called for has already been done. */
export async function removeFilesOf(parts: Parts, owner: Owner, log: RemovalLog): Promise<void> {
  try {
    await removeAll(parts, await listFilesOf(parts.db, owner, AT_ONCE_MAX));
  } catch (error) {
    log.error({ err: error, ...owner }, 'files could not be removed; the next sweep tries again');
  }
}

/**
 * One round: files without an owner are removed, and grants of which nothing was heard are looked up.
 *
 * @returns how many rows it settled; as many as `limit` means that there may be more
 */
export async function sweepFiles(parts: Parts, limit = SWEEP_MAX): Promise<number> {
  const { db, storage, clock } = parts;
  const orphans = await listOrphans(db, limit);
  await removeAll(parts, orphans);

  const before = toTimestamp(clock() - UNSETTLED_AFTER_MS);
  const unsettled = await listUnsettled(db, before, limit - orphans.length);
  await inParallel(unsettled, async ({ key }) => {
    const object = await storage.open(key);
    if (object === null) return deleteFile(db, key);
    await object.close();
    await markStored(db, key, object.size, toTimestamp(clock()));
  });
  return orphans.length + unsettled.length;
}

function removeAll({ db, storage }: Parts, files: readonly File[]): Promise<void> {
  return inParallel(files, async ({ key }) => {
    await storage.delete(key);
    await deleteFile(db, key);
  });
}

/** The first failure ends the round: a home that does not answer one call will not answer the others. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const pending = [...items];
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
        try {
          await work(item);
        } catch (error) {
          pending.length = 0;
          throw error;
        }
      }
    }),
  );
}

export interface Sweeping {
  /** Waits for a round that is on its way. */
  stop(): Promise<void>;
}

/** Sweeps everything there is, now and then every so often, until it is stopped. Rounds never overlap. */
export function startSweeping(parts: Parts, everyMs: Millis, log: RemovalLog, atOnce = SWEEP_MAX): Sweeping {
  let round: Promise<void> = Promise.resolve();
  let isRunning = false;
  let isStopping = false;
  const sweep = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    try {
      await parts.storage.sweep();
      let settled: number;
      do settled = await sweepFiles(parts, atOnce);
      while (settled >= atOnce && !isStopping);
    } catch (error) {
      const reason = error instanceof StorageUnavailable ? error.message : 'the files could not be swept';
      log.error({ err: error }, reason);
    } finally {
      isRunning = false;
    }
  };
  const begin = (): void => {
    if (!isRunning) round = sweep();
  };
  const timer = setInterval(begin, everyMs);
  timer.unref();
  begin();
  return {
    async stop() {
      isStopping = true;
      clearInterval(timer);
      await round;
    },
  };
}
