/** Makes one attempt at a delivery: signs the body, sends it and returns the result. */
import { createHmac } from 'node:crypto';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Leased } from './lease.ts';
import type { Sender, SendResult } from './sender.ts';

export interface Attempt extends SendResult {
  readonly startedAt: Millis;
  readonly duration: Millis;
}

export async function attemptDelivery(
  { sender, clock }: { readonly sender: Sender; readonly clock: Clock },
  {
    id,
    url,
    secret,
    reach,
    webhookId,
    payload,
  }: Pick<Leased, 'id' | 'url' | 'secret' | 'webhookId' | 'payload' | 'reach'>,
): Promise<Attempt> {
  const startedAt = clock();
  const body = bodyOf(webhookId, payload);
  const headers = signedHeaders({ id, body, secret, time: startedAt });
  const result = await sender.send({ url, headers, body, reach });
  return { ...result, startedAt, duration: Math.max(clock() - startedAt, 0) };
}

/** @param payload a JSON object that all webhooks of the event share, see jobs/fan-out.ts */
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
