/**
 * Keeps a process at its share of the work: fan out what is in the outbox, lease what is due, make the attempts.
 *
 * It wakes at once when this process wrote an event or finished an attempt, and otherwise looks about once a second: for
 * retries whose time has come, for events of other processes, and for what a dead process left behind. Any number of
 * processes may do this on one database.
 *
 * Attempts run side by side within bounds: in all, of one workspace, and of one webhook. A receiver that hangs keeps its
 * own places and nothing else waits for it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { Context } from '#api/context.ts';
import { newId } from '#api/ids.ts';
import { fanOut } from '#api/jobs/fan-out.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { places } from './concurrency.ts';
import { attemptDelivery } from './deliver.ts';
import { findHeads, type Head, type Leased, leaseDeliveries } from './lease.ts';
import { settleDelivery } from './settle.ts';

const POLL: Millis = 1_000;
/** Between passes that follow one another. */
const GATHER: Millis = 10;
/** Three times what an attempt may take: whoever has a lease has settled long before it runs out. */
export const LEASE: Millis = 15_000;
/** How long stopping waits for attempts that are under way; each is over in five seconds. */
const STOP_TIMEOUT: Millis = 7_000;

export interface Worker {
  /** Resolves when there is nothing more to do now: nothing in the outbox, nothing due, nothing under way. */
  idle(): Promise<void>;
  /** Begins nothing new, waits a bounded time for what is under way, and leaves the rest to its lease. */
  stop(): Promise<void>;
}

/** @param context `outbox` wakes the worker */
export function startWorker(context: Context, log: FastifyBaseLogger): Worker {
  const { db, clock, random, outbox, sender, config } = context;
  const taken = places();
  const running = new Set<Promise<void>>();
  /** Where the walk over the webhooks goes on. */
  let cursor = '';
  let isStopping = false;
  let isAwake = true;
  let wakeUp = (): void => {};

  const wake = (): void => {
    isAwake = true;
    wakeUp();
  };

  const deliver = async (leased: Leased): Promise<void> => {
    try {
      const attempt = await attemptDelivery({ sender, clock }, leased);
      const settlement = await settleDelivery(db, leased, attempt, {
        attemptsMax: config.webhooks.attemptsMax,
        random,
      });
      const about = { deliveryId: leased.id, webhookId: leased.webhookId, statusCode: attempt.statusCode };
      if (settlement === 'parked') log.warn({ ...about, error: attempt.error }, 'a delivery is parked');
      else log.debug({ ...about, settlement }, 'a delivery was attempted');
    } catch (error) {
      // The lease runs out, and then it is tried again.
      log.error({ err: error, deliveryId: leased.id }, 'a delivery could not be settled');
    }
  };

  const leaseFor = async (head: Head): Promise<void> => {
    const count = taken.left(head);
    if (count === 0) return;
    const now = clock();
    const lease = { name: newId(random), until: toTimestamp(now + LEASE) };
    const wanted = { webhookId: head.webhookId, count, now: toTimestamp(now) };
    for (const leased of await leaseDeliveries(db, wanted, lease)) {
      taken.take(head);
      const delivering = deliver(leased).finally(() => {
        taken.giveBack(head);
        running.delete(delivering);
        wake();
      });
      running.add(delivering);
    }
  };

  /** One round: from where the last one had to stop to the end, and what stands before that in the next round. */
  const leaseDue = async (): Promise<void> => {
    const start = cursor;
    let next: string | null = start;
    while (next !== null) {
      const heads = await findHeads(db, next, toTimestamp(clock()));
      for (const head of heads.due) {
        if (isStopping || taken.areAllTaken()) return;
        await leaseFor(head);
        cursor = head.webhookId;
      }
      next = heads.next;
    }
    cursor = '';
    if (start !== '') isAwake = true;
  };

  const pass = async (): Promise<void> => {
    try {
      while ((await fanOut(context, log)) > 0 && !isStopping) await leaseDue();
      if (!isStopping) await leaseDue();
    } catch (error) {
      log.error({ err: error }, 'the event worker could not read its work; it tries again');
      isAwake = false;
    }
  };

  const idlers = new Set<() => void>();
  const loop = async (): Promise<void> => {
    while (!isStopping) {
      if (isAwake) {
        isAwake = false;
        await pass();
        // Under load a pass finds several events and places at once, which costs little more than one of each.
        if (isAwake) await sleep(GATHER);
        continue;
      }
      if (running.size === 0) {
        for (const resolve of idlers) resolve();
        idlers.clear();
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, POLL);
        wakeUp = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wakeUp = () => {};
      isAwake = true;
    }
    for (const resolve of idlers) resolve();
  };

  const endListening = outbox.listen(wake);
  const ended = loop();

  return {
    async idle() {
      if (isStopping) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      idlers.add(resolve);
      wake();
      await promise;
    },
    async stop() {
      isStopping = true;
      endListening();
      wake();
      await ended;
      let timer: NodeJS.Timeout | undefined;
      const tooLong = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, STOP_TIMEOUT);
      });
      await Promise.race([Promise.all(running), tooLong]);
      clearTimeout(timer);
    },
  };
}
