/** Delivers events: makes the attempts at due deliveries. Several processes can do this on one database. */
import { createHmac } from 'node:crypto';
import { type Queue, settle, startQueue } from '#api/db/queue.ts';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/values/ids.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type Delivery, dueDeliveries, loadDeliveries, PLACES, settleDelivery } from './deliveries.ts';
import type { Signal } from './outbox.ts';
import type { Sender } from './sender.ts';

const POLL_MS: Millis = 1_000;
/** They take 11 to 13 minutes: longer than a restart. What is parked then waits for the operator, and is not lost. */
const ATTEMPTS_MAX = 8;
/** Three times as long as an attempt may take, so an attempt is settled long before its lease expires. */
const LEASE_MS: Millis = 15_000;
/** How long stopping waits for attempts that are running. Each ends within five seconds. */
const STOP_MS: Millis = 7_000;
const SECRET_PREFIX = 'whsec_';

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

export function startWorker(options: WorkerOptions): Queue {
  const { acceptFollowUps, attemptsMax = ATTEMPTS_MAX, clock, db, log, outbox, random, sender } = options;

  const deliver = async (delivery: Delivery): Promise<void> => {
    const { id: deliveryId, webhookId, url, reach } = delivery;
    const startedAt = clock();
    if (delivery.failureCount > attemptsMax) {
      await settle(db, 'deliveries', delivery, startedAt, { status: 'parked', dueAt: null });
      log.warn({ deliveryId, webhookId }, 'a delivery is parked: its last attempt did not end');
      return;
    }
    const body = bodyOf(delivery);
    const headers = signedHeaders(delivery, body, startedAt);
    const result = await sender.send({ url, headers, body, reach });
    const attempt = { ...result, startedAt, duration: Math.max(clock() - startedAt, 0) };
    const settlement = await settleDelivery(db, delivery, attempt, { attemptsMax, random });
    const about = { deliveryId, webhookId, statusCode: attempt.statusCode };
    if (settlement === 'parked') log.warn({ ...about, error: attempt.error }, 'a delivery is parked');
    else log.debug({ ...about, settlement }, 'a delivery was attempted');
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
  outbox.listen(queue.wake);
  return queue;
}

/** The payload is a JSON object that all webhooks of the event share, see resources/responses/record-events.ts. */
function bodyOf({ webhookId, payload }: Delivery): string {
  return `{"webhookId":${JSON.stringify(webhookId)},${payload.slice(1)}`;
}

/** Returns the headers of Standard Webhooks, by which a receiver identifies a delivery and its sender. */
function signedHeaders(
  { id, secret }: Delivery,
  body: string,
  time: Millis,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(time / 1_000));
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
