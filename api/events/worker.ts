/**
 * Delivers events: turns those of the outbox into deliveries, leases due deliveries, and makes the attempts. Several
 * processes can do this on one database.
 *
 * Attempts run in parallel within limits: in all, and for each receiver, organization, workspace and webhook
 * (concurrency.ts). A receiver that hangs uses only its own share, and soon nothing (breaker.ts). Free places go to the
 * organizations in turn (turns.ts).
 */
import type { Database } from '#api/db/schema.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { watchClock } from '#api/work/clock-step.ts';
import { type Pass, startQueueRunner } from '#api/work/queue-runner.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { createBreaker } from './breaker.ts';
import { type Counted, createAttemptLimits } from './concurrency.ts';
import { type Attempt, attemptDelivery } from './deliver.ts';
import { findHeads, type Head, type Leased, leaseDeliveries, mendDueTimes } from './lease.ts';
import type { Sender } from './sender.ts';
import { failDue, giveUp, hasNoAttemptLeft, settleDelivery } from './settle.ts';
import type { Signal } from './signal.ts';
import { createTurns } from './turns.ts';

const POLL_MS: Millis = 1_000;
/** They take 11 to 13 minutes: longer than a restart. What is parked then waits for the operator, and is not lost. */
const ATTEMPTS_MAX = 8;
/** Maximum number of webhooks in one round. The next round continues behind them. */
const ROUND_MAX = 10_000;
/** The number of deliveries that fail in one transaction because their receiver hangs. */
const FAILED_TOGETHER_MAX = 200;
/** Three times as long as an attempt may take, so an attempt is settled long before its lease expires. */
export const LEASE_MS: Millis = 15_000;
/** How long stopping waits for attempts that are running. Each ends within five seconds. */
const STOP_TIMEOUT_MS: Millis = 7_000;

export interface Worker {
  /** Resolves when there is nothing to do: the outbox is empty, and nothing is due or running. */
  idle(): Promise<void>;
  /** Begins no new attempts, and waits for running ones for a bounded time. The leases of the others expire. */
  stop(): Promise<void>;
}

interface WorkerLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

interface WorkerOptions {
  readonly db: Database;
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Sender;
  readonly outbox: Signal;
  /** The number of failed attempts after which a delivery is parked. Default: ATTEMPTS_MAX. Tests set a smaller one. */
  readonly attemptsMax?: number;
  /** Turns events into deliveries. @returns the number of events; 0 if the outbox is empty */
  readonly fanOut: () => Promise<number>;
  readonly log: WorkerLog;
}

export function startWorker(options: WorkerOptions): Worker {
  const { db, clock, random, sender, outbox, attemptsMax = ATTEMPTS_MAX, fanOut, log } = options;
  const limits = createAttemptLimits();
  const breaker = createBreaker(clock);
  const turns = createTurns();
  const wasSetBack = watchClock(clock);
  /** Id of the webhook where the next round begins. */
  let cursor = '';

  const deliver = async (leased: Leased, { receiver }: Counted): Promise<void> => {
    const { id: deliveryId, webhookId } = leased;
    try {
      if (hasNoAttemptLeft(leased, attemptsMax)) {
        await giveUp(db, leased, clock(), { attemptsMax, random });
        log.warn({ deliveryId, webhookId, error: 'the last attempt did not end' }, 'a delivery is parked');
        return;
      }
      const attempt = await attemptDelivery({ sender, clock }, leased);
      limits.record(receiver, attempt.duration);
      const hangs = learn(webhookId, attempt.isHung);
      const settlement = await settleDelivery(db, leased, attempt, { attemptsMax, random });
      const about = { deliveryId, webhookId, statusCode: attempt.statusCode };
      if (settlement === 'parked') log.warn({ ...about, error: attempt.error }, 'a delivery is parked');
      else log.debug({ ...about, settlement }, 'a delivery was attempted');
      if (hangs) await failRest(webhookId, attempt);
    } catch (error) {
      // The lease of the delivery expires, and then there is another attempt.
      log.error({ err: error, deliveryId }, 'a delivery could not be settled');
    }
  };

  /** @returns true if the receiver has opened the breaker */
  const learn = (webhookId: string, isHung: boolean): boolean => {
    const before = breaker.state(webhookId);
    const after = breaker.record(webhookId, isHung);
    if (before !== 'closed' && after === 'closed') {
      log.warn({ webhookId }, 'the receiver of a webhook answers again');
    }
    if (before === 'closed' && after === 'open') {
      log.warn({ webhookId }, 'the receiver of a webhook hangs; deliveries to it are paused and retried');
    }
    return after === 'open';
  };

  const failRest = async (webhookId: string, { startedAt }: Attempt): Promise<void> => {
    let failed = FAILED_TOGETHER_MAX;
    while (failed === FAILED_TOGETHER_MAX) {
      const due = { dueBefore: startedAt, now: clock() };
      failed = await failDue(db, webhookId, due, { attemptsMax, random }, FAILED_TOGETHER_MAX);
    }
  };

  const leaseFor = async (head: Head, { track }: Pass): Promise<void> => {
    const counted: Counted = { ...head, receiver: originOf(head.url) };
    const state = breaker.state(head.webhookId);
    const count = Math.min(limits.available(counted), state === 'probing' ? 1 : Number.POSITIVE_INFINITY);
    if (count <= 0 || state === 'open') return;
    const now = clock();
    const lease = { name: newId(random), until: toTimestamp(now + LEASE_MS) };
    const wanted = { webhookId: head.webhookId, count, now: toTimestamp(now) };
    const taken = await leaseDeliveries(db, wanted, lease);
    if (taken.length > 0) turns.serve(head);
    for (const leased of taken) {
      const endProbe = state === 'probing' ? breaker.beginProbe(head.webhookId) : null;
      const release = limits.acquire(counted);
      track(
        deliver(leased, counted).finally(() => {
          release();
          endProbe?.();
        }),
      );
    }
  };

  /**
   * Visits all webhooks with due deliveries, or the next ones if there are very many.
   *
   * @returns true if others are left for the next round
   */
  const leaseDue = async (pass: Pass): Promise<boolean> => {
    if (limits.isExhausted()) return false;
    const due: Head[] = [];
    let next: string | null = cursor;
    while (next !== null && due.length < ROUND_MAX) {
      const heads = await findHeads(db, next, toTimestamp(clock()));
      due.push(...heads.due);
      next = heads.next;
    }
    cursor = next ?? '';
    for (const head of turns.order(due)) {
      if (pass.isStopping() || limits.isExhausted()) return false;
      await leaseFor(head, pass);
    }
    return cursor !== '';
  };

  const runner = startQueueRunner({
    pollMs: POLL_MS,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onError: (error) => log.error({ err: error }, 'the event worker could not read its work; it tries again'),
    async pass(pass) {
      if (wasSetBack()) await mendDueTimes(db, clock(), LEASE_MS);
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

/** Returns the origin of a stored URL. A malformed one counts as a receiver of its own. */
function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
