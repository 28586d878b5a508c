/** The headers by which a receiver knows a delivery and its sender (Standard Webhooks). */
import { createHmac } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';

const SECRET_PREFIX = 'whsec_';

interface Signable {
  /** The same for every attempt at a delivery. */
  readonly id: string;
  /** Of this attempt. */
  readonly time: Millis;
  readonly body: string;
  /** null: the webhook is from before there were secrets, and its deliveries are not signed. */
  readonly secret: string | null;
}

export function signedHeaders({ id, time, body, secret }: Signable): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(time / 1_000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp };
  if (secret === null) return headers;
  const key = Buffer.from(
    secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret,
    'base64',
  );
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { ...headers, 'webhook-signature': `v1,${signature}` };
}
