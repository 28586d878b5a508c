/** Makes one attempt at a delivery: signs the body, sends it and returns the result. */
import { createHmac } from 'node:crypto';
import type { Leased } from '#api/db/queue.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Sender, SendResult } from './sender.ts';
import type { Reach } from './targets.ts';

/** A leased delivery with what an attempt needs. */
export interface Delivery extends Leased {
  readonly webhookId: string;
  readonly url: string;
  readonly secret: string;
  readonly payload: string;
  readonly reach: Reach;
}

export interface Attempt extends SendResult {
  /** false if nothing was sent, so that it tells nothing about the receiver. */
  readonly isSent: boolean;
  readonly startedAt: Millis;
  readonly duration: Millis;
}

export async function attemptDelivery(
  { sender, clock }: { readonly sender: Sender; readonly clock: Clock },
  { id, url, secret, reach, webhookId, payload }: Delivery,
): Promise<Attempt> {
  const startedAt = clock();
  const body = bodyOf(webhookId, payload);
  const headers = signedHeaders({ id, body, secret, time: startedAt });
  const result = await sender.send({ url, headers, body, reach });
  return { ...result, isSent: true, startedAt, duration: Math.max(clock() - startedAt, 0) };
}

/** Returns the result of a delivery whose last attempt did not end, such as with its process. */
export function unfinished(startedAt: Millis): Attempt {
  return {
    isSent: false,
    isDelivered: false,
    isHung: false,
    isPrivate: false,
    statusCode: null,
    reply: null,
    retryAfter: null,
    error: 'No attempt is left: the last one did not end, such as with its process',
    startedAt,
    duration: 0,
  };
}

/** @param payload a JSON object that all webhooks of the event share, see resources/responses/record-events.ts */
function bodyOf(webhookId: string, payload: string): string {
  return `{"webhookId":${JSON.stringify(webhookId)},${payload.slice(1)}`;
}

const SECRET_PREFIX = 'whsec_';

interface Signable {
  readonly id: string;
  readonly time: Millis;
  readonly body: string;
  readonly secret: string;
}

/** Returns the headers of Standard Webhooks, by which a receiver identifies a delivery and its sender. */
export function signedHeaders({ id, time, body, secret }: Signable): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(time / 1_000));
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
