/** One attempt at one delivery: sign what is to be said now, send it, and tell how it went. */

import type { Clock, Millis } from '#shared/clock.ts';
import type { Leased } from './lease.ts';
import type { Sender, SendResult } from './sender.ts';
import { signedHeaders } from './signature.ts';
import type { Reach } from './targets.ts';

export interface Attempt extends SendResult {
  readonly startedAt: Millis;
  readonly duration: Millis;
}

export async function attemptDelivery(
  { sender, clock }: { readonly sender: Sender; readonly clock: Clock },
  leased: Pick<Leased, 'id' | 'url' | 'secret' | 'webhookId' | 'payload' | 'reach'>,
): Promise<Attempt> {
  const { id, url, secret, reach, webhookId, payload } = leased;
  return attempt({ sender, clock }, { id, url, secret, reach, body: bodyOf(webhookId, payload) });
}

/** @param message the body as it is sent, and the id that every attempt at it shares */
export async function attempt(
  { sender, clock }: { readonly sender: Sender; readonly clock: Clock },
  message: {
    readonly id: string;
    readonly url: string;
    readonly secret: string | null;
    readonly body: string;
    readonly reach: Reach;
  },
): Promise<Attempt> {
  const startedAt = clock();
  const headers = signedHeaders({ ...message, time: startedAt });
  const result = await sender.send({ url: message.url, headers, body: message.body, reach: message.reach });
  return { ...result, startedAt, duration: Math.max(clock() - startedAt, 0) };
}

/** @param payload a JSON object, as jobs/payload.ts makes it @returns the body for one webhook */
function bodyOf(webhookId: string, payload: string): string {
  return `{"webhookId":${JSON.stringify(webhookId)},${payload.slice(1)}`;
}
