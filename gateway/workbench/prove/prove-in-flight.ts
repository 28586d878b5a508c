/**
 * Tests whether a running gateway admits exactly as many requests in flight as a policy allows. Each request announces
 * a body and does not send it. So an admitted request waits in the gateway and never reaches the application.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Millis } from '#shared/clock.ts';

/** Number of requests that are sent beyond the limit. */
export const IN_FLIGHT_EXTRA = 5;
/** Admitted requests get no reply. After this time without a denial, no more denials are expected. */
const SILENCE_MS: Millis = 500;
const ANSWER_MS: Millis = 10_000;

interface HeldBack {
  readonly sent: number;
  readonly denied: number;
  /** Statuses of other replies, which come from the application or from a bound. */
  readonly others: readonly number[];
}

/** @throws CommandError if no gateway answers */
export async function sendInFlight(
  url: URL,
  method: string,
  headers: Headers,
  limit: number,
): Promise<HeldBack> {
  const sent = limit + IN_FLIGHT_EXTRA;
  const replies: IncomingMessage[] = [];
  const requests: ClientRequest[] = [];
  let failed = 0;
  const denied = (): number =>
    replies.filter((reply) => reply.headers['x-gateway-ratelimited'] === 'true').length;
  const open = url.protocol === 'https:' ? httpsRequest : httpRequest;
  try {
    for (let i = 0; i < sent; i++) {
      const request = open(url, {
        method,
        agent: false,
        headers: { ...Object.fromEntries(headers), 'content-length': '1' },
      });
      request.on('response', (reply) => {
        reply.resume();
        replies.push(reply);
      });
      request.on('error', () => failed++);
      request.flushHeaders();
      requests.push(request);
    }
    const end = performance.now() + ANSWER_MS;
    for (let quietSince = performance.now(), seen = -1; performance.now() < end; await delay(20)) {
      if (replies.length !== seen) quietSince = performance.now();
      seen = replies.length;
      if (denied() >= IN_FLIGHT_EXTRA && performance.now() - quietSince >= SILENCE_MS) break;
      if (failed === sent) throw noGateway(url.origin);
    }
  } finally {
    for (const request of requests) request.destroy();
  }
  const others = replies
    .filter((reply) => reply.headers['x-gateway-ratelimited'] !== 'true')
    .map(({ statusCode = 0 }) => statusCode);
  return { sent, denied: denied(), others };
}

export function noGateway(origin: string): CommandError {
  return new CommandError(
    `no gateway answers on ${origin}; start it, or name its public listener with --public`,
    EXIT.unreachable,
  );
}
