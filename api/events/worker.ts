/** Delivers events: makes the attempts at due deliveries. Several processes can do this on one database. */

import { type Queue, startQueue } from '#api/db/queue.ts';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { attemptDelivery, type Delivery, unfinished } from './deliver.ts';
import { dueDeliveries, loadDeliveries, PLACES, settleDelivery } from './deliveries.ts';
import type { Sender } from './sender.ts';
import type { Signal } from './signal.ts';

const POLL_MS: Millis = 1_000;
/** They take 11 to 13 minutes: longer than a restart. What is parked then waits for the operator, and is not lost. */
const ATTEMPTS_MAX = 8;
/** Three times as long as an attempt may take, so an attempt is settled long before its lease expires. */
const LEASE_MS: Millis = 15_000;
/** How long stopping waits for attempts that are running. Each ends within five seconds. */
const STOP_MS: Millis = 7_000;

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
  /** Accepts the follow-up mails of new events. @returns the number of events; 0 if there is none */
  readonly acceptFollowUps: () => Promise<number>;
  readonly log: WorkerLog;
}

export function startWorker(options: WorkerOptions): Pick<Queue, 'idle' | 'stop'> {
  const { acceptFollowUps, attemptsMax = ATTEMPTS_MAX, clock, db, log, outbox, random } = options;

  const deliver = async (delivery: Delivery): Promise<void> => {
    const { id: deliveryId, webhookId } = delivery;
    const hasNoAttempt = delivery.failureCount > attemptsMax;
    const attempt = hasNoAttempt ? unfinished(clock()) : await attemptDelivery(options, delivery);
    const settled = await settleDelivery(db, delivery, attempt, { attemptsMax, random });
    const about = { deliveryId, webhookId, statusCode: attempt.statusCode };
    if (settled.delivery === 'parked') log.warn({ ...about, error: attempt.error }, 'a delivery is parked');
    else log.debug({ ...about, settlement: settled.delivery }, 'a delivery was attempted');
    if (settled.receiver === 'hangs') {
      log.warn({ webhookId }, 'the receiver of a webhook hangs; deliveries to it are paused and retried');
    }
  };

  const queue = startQueue({
    db,
    clock,
    random,
    table: 'deliveries',
    placesMax: PLACES,
    leaseMs: LEASE_MS,
    pollMs: POLL_MS,
    stopMs: STOP_MS,
    choose: dueDeliveries,
    attempt: async (leased) => (await loadDeliveries(db, leased)).map(deliver),
    async prepare(isStopping) {
      while (!isStopping() && (await acceptFollowUps()) > 0);
    },
    // The lease of a delivery that could not be settled expires, and then there is another attempt.
    onError: (error) =>
      log.error({ err: error }, 'deliveries could not be read or written; this is tried again'),
  });
  const endListening = outbox.listen(queue.wake);
  return {
    idle: queue.idle,
    async stop() {
      endListening();
      await queue.stop();
    },
  };
}
