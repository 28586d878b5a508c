/**
 * Durable queues. A queue is a table, which all processes share and which outlives them. The row carries the state:
 *
 * - `dueAt` is the time of the next attempt. A lease is a later `dueAt`: if the process dies, the row is due again, so
 *   nothing has to clean up. null: there are no further attempts.
 * - `failureCount` counts an attempt from its lease until it has succeeded. So a row can crash the process only a limited
 *   number of times.
 *
 * A look at the table happens when the queue is woken, and otherwise once in each poll interval: for rows that become due
 * later, for those of other processes, and for those that a dead process left behind.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Kysely, RawBuilder } from 'kysely';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { unlocked } from './locks.ts';
import type { Database, QueueColumns, Tables } from './schema.ts';

type QueueTable = 'deliveries' | 'mailOutbox';

/** A row that this process may attempt. */
export interface Leased {
  readonly id: string;
  /** Id of the lease; null as soon as the attempt is settled. */
  readonly lease: string | null;
  readonly attemptCount: number;
  /** It includes this attempt. */
  readonly failureCount: number;
}

export interface Queue {
  /** Called when there is work. If a call is lost, the next poll finds the work. */
  wake(): void;
  /** Resolves when nothing is due and nothing is in progress. */
  idle(): Promise<void>;
  /** Begins no attempt any more, and waits a bounded time for those in progress. The leases of the others expire. */
  stop(): Promise<void>;
}

interface QueueOptions {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly table: QueueTable;
  /** How many attempts may be in progress in this process. */
  readonly placesMax: number;
  /** Longer than any attempt takes. */
  readonly leaseMs: Millis;
  readonly pollMs: Millis;
  /** How long stopping waits for attempts. */
  readonly stopMs: Millis;
  /** This query is the scheduler: it selects the ids of rows that get a place now. */
  readonly choose: (now: Millis, places: number) => RawBuilder<{ readonly id: string }>;
  /** Makes the attempts at these rows, and settles them. */
  readonly attempt: (leased: readonly Leased[]) => Promise<readonly Promise<void>[]>;
  /** Work before each look at the table. */
  readonly prepare?: (isStopping: () => boolean) => Promise<void>;
  /** Called when the table could not be read or written. The next look is at the next poll. */
  readonly onError: (error: unknown) => void;
}

/** Pause between looks. Under load a look then finds several rows at once. */
const GATHER_MS: Millis = 20;

export function startQueue(options: QueueOptions): Queue {
  const { attempt, onError, pollMs, placesMax, prepare, stopMs } = options;
  const running = new Set<Promise<void>>();
  const idlers = new Set<() => void>();
  let isStopping = false;
  let isDue = true;
  let endPause = (): void => {};
  const wake = (): void => {
    isDue = true;
    endPause();
  };
  const endIdling = (): void => {
    for (const resolve of idlers) resolve();
    idlers.clear();
  };

  const look = async (): Promise<void> => {
    await prepare?.(() => isStopping);
    const places = placesMax - running.size;
    if (isStopping || places <= 0) return;
    const taken = await lease(options, places);
    for (const one of taken.length === 0 ? [] : await attempt(taken)) {
      const tracked = one.catch(onError).finally(() => {
        running.delete(tracked);
        wake();
      });
      running.add(tracked);
    }
    // There may be more.
    isDue ||= taken.length > 0;
  };
  const pause = async (): Promise<void> => {
    if (running.size === 0) endIdling();
    const timer = setTimeout(wake, pollMs);
    await new Promise<void>((resolve) => {
      endPause = resolve;
    });
    clearTimeout(timer);
  };
  const loop = async (): Promise<void> => {
    while (!isStopping) {
      if (!isDue) await pause();
      isDue = false;
      await look().catch((error: unknown) => {
        onError(error);
        isDue = false;
      });
      if (isDue) await sleep(GATHER_MS);
    }
    endIdling();
  };
  const ended = loop();

  return {
    wake,
    async idle() {
      if (isStopping) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      idlers.add(resolve);
      wake();
      await promise;
    },
    async stop() {
      isStopping = true;
      wake();
      const all = ended.then(() => Promise.all(running));
      await within(stopMs, all).catch(() => undefined);
    },
  };
}

/** Types the table by the columns that both queues have. */
const on = (db: Database) => db as unknown as Kysely<{ [Table in QueueTable]: QueueColumns }>;

async function lease(
  { choose, clock, db, leaseMs, random, table }: QueueOptions,
  places: number,
): Promise<readonly Leased[]> {
  const now = clock();
  const { rows } = await choose(now, places).execute(db);
  if (rows.length === 0) return [];
  const free = db
    .selectFrom(table)
    .select('id')
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .where('dueAt', '<=', toTimestamp(now));
  return (
    on(db)
      // The planner must choose once: rows that no other process is leasing now.
      .with('free', () => unlocked(db, free))
      .updateTable(table)
      .set((row) => ({
        dueAt: toTimestamp(now + leaseMs),
        updatedAt: toTimestamp(now),
        lease: newId(random),
        attemptCount: row('attemptCount', '+', 1),
        failureCount: row('failureCount', '+', 1),
      }))
      .where('id', 'in', (from) => from.selectFrom('free').select('free.id'))
      // Some databases let two updates choose the same rows. Then the second one finds them leased.
      .where('dueAt', '<=', toTimestamp(now))
      .returning(['id', 'lease', 'attemptCount', 'failureCount'])
      .execute()
  );
}

/**
 * Records the result of an attempt.
 *
 * @returns false if the row was deleted, or its lease has expired and another process has it
 */
export async function settle<Table extends QueueTable>(
  db: Database,
  table: Table,
  { id, lease }: Leased,
  now: Millis,
  columns: Partial<Tables[Table]> & Pick<QueueColumns, 'dueAt'>,
): Promise<boolean> {
  const { numUpdatedRows } = await on(db)
    .updateTable<QueueTable>(table)
    .set({ ...columns, lease: null, updatedAt: toTimestamp(now) })
    .where('id', '=', id)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Returns the pause before the next attempt. Each is twice as long as the one before.
 *
 * @param failures so far, at least 1
 * @param jitter adds up to this share at random, so that attempts that failed together do not return together
 */
export function pauseAfter(
  failures: number,
  { firstMs, maxMs, jitter }: { readonly firstMs: Millis; readonly maxMs: Millis; readonly jitter: number },
  random: Random,
): Millis {
  const chance = Buffer.from(random(4)).readUInt32BE(0) / 2 ** 32;
  return Math.round(Math.min(firstMs * 2 ** (failures - 1), maxMs) * (1 + jitter * chance));
}
