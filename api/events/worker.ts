/**
 * Keeps a process at its share of the deliveries: fan out what is in the outbox, lease what is due, make the attempts.
 * Any number of processes may do this on one database.
 *
 * Attempts run side by side within bounds: in all, of one workspace, and of one webhook (concurrency.ts). A receiver that
 * hangs takes up only its own share, and nothing else waits for it.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import { newId, type Random } from '#api/ids.ts';
import { type Pass, startQueueRunner } from '#api/queue-runner.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { createAttemptLimits } from './concurrency.ts';
import { attemptDelivery } from './deliver.ts';
import { findHeads, type Head, type Leased, leaseDeliveries } from './lease.ts';
import type { Sender } from './sender.ts';
import { settleDelivery } from './settle.ts';
import type { Signal } from './signal.ts';

const POLL_MS: Millis = 1_000;
/** Three times what an attempt may take: whoever has a lease has settled long before it runs out. */
export const LEASE_MS: Millis = 15_000;
/** How long stopping waits for attempts that are under way; each is over in five seconds. */
const STOP_TIMEOUT_MS: Millis = 7_000;

export interface Worker {
  /** Resolves when there is nothing more to do now: nothing in the outbox, nothing due, nothing under way. */
  idle(): Promise<void>;
  /** Begins nothing new, waits a bounded time for what is under way, and leaves the rest to its lease. */
  stop(): Promise<void>;
}

export interface WorkerLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface WorkerOptions {
  readonly db: Kysely<Database>;
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Sender;
  /** Wakes the worker. */
  readonly outbox: Signal;
  /** Failed attempts after which a delivery is parked. */
  readonly attemptsMax: number;
  /** ConcurrencyLimit events into deliveries. @returns how many events there were, 0 when the outbox is empty */
  readonly fanOut: () => Promise<number>;
  readonly log: WorkerLog;
}

export function startWorker(options: WorkerOptions): Worker {
  const { db, clock, random, sender, outbox, attemptsMax, fanOut, log } = options;
  const limits = createAttemptLimits();
  /** Where the walk over the webhooks goes on. */
  let cursor = '';

  const deliver = async (leased: Leased): Promise<void> => {
    try {
      const attempt = await attemptDelivery({ sender, clock }, leased);
      const settlement = await settleDelivery(db, leased, attempt, { attemptsMax, random });
      const about = { deliveryId: leased.id, webhookId: leased.webhookId, statusCode: attempt.statusCode };
      if (settlement === 'parked') log.warn({ ...about, error: attempt.error }, 'a delivery is parked');
      else log.debug({ ...about, settlement }, 'a delivery was attempted');
    } catch (error) {
      // The lease runs out, and then it is tried again.
      log.error({ err: error, deliveryId: leased.id }, 'a delivery could not be settled');
    }
  };

  const leaseFor = async (head: Head, { track }: Pass): Promise<void> => {
    const count = limits.available(head);
    if (count === 0) return;
    const now = clock();
    const lease = { name: newId(random), until: toTimestamp(now + LEASE_MS) };
    const wanted = { webhookId: head.webhookId, count, now: toTimestamp(now) };
    for (const leased of await leaseDeliveries(db, wanted, lease)) {
      const release = limits.acquire(head);
      track(deliver(leased).finally(release));
    }
  };

  /**
   * One round: from where the last one had to stop to the end.
   *
   * @returns whether what stands before that is left for the next round
   */
  const leaseDue = async (pass: Pass): Promise<boolean> => {
    const start = cursor;
    let next: string | null = start;
    while (next !== null) {
      const heads = await findHeads(db, next, toTimestamp(clock()));
      for (const head of heads.due) {
        if (pass.isStopping() || limits.isExhausted()) return false;
        await leaseFor(head, pass);
        cursor = head.webhookId;
      }
      next = heads.next;
    }
    cursor = '';
    return start !== '';
  };

  const runner = startQueueRunner({
    pollMs: POLL_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onError: (error) => log.error({ err: error }, 'the event worker could not read its work; it tries again'),
    async pass(pass) {
      while ((await fanOut()) > 0 && !pass.isStopping()) await leaseDue(pass);
      return pass.isStopping() ? false : leaseDue(pass);
    },
  });
  const endListening = outbox.listen(runner.wake);
  return {
    idle: runner.idle,
    async stop() {
      endListening();
      await runner.stop();
    },
  };
}
