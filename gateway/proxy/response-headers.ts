import type { ClientResponse } from '#gateway/http/client-exchange.ts';
import {
  DECISION_HEADER,
  EXPOSE_HEADER,
  EXPOSED_LIMITS,
  exposesAll,
  LIMIT_HEADERS,
  RATELIMITED_HEADER,
} from '#gateway/http/header-names.ts';
import { dropNominated, HOP_BY_HOP, nominated } from '#gateway/http/hop-by-hop.ts';

export interface ClientHeaders {
  readonly headers: string[];
  readonly hasContentLength: boolean;
  /** Whether the reply is text/event-stream. Then it lasts as long as the client listens. */
  readonly isEventStream: boolean;
  /** Whether Upgrade is among the headers. Then Connection must name it (RFC 9110 7.8). */
  readonly namesUpgrade: boolean;
}

const SPECIAL: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  RATELIMITED_HEADER,
  DECISION_HEADER,
  ...LIMIT_HEADERS,
  'content-length',
  'content-type',
  'access-control-expose-headers',
]);
const EVENT_STREAM = /^text\/event-stream\s*(?:;|$)/i;
const LIMITS: ReadonlySet<string> = new Set(LIMIT_HEADERS);

/** Adds the Connection field, unless the response writes the right one itself. */
export function addConnection(
  { headers, namesUpgrade }: ClientHeaders,
  isDraining: boolean,
  { shouldKeepAlive }: ClientResponse,
): void {
  const option = isDraining || !shouldKeepAlive ? 'close' : 'keep-alive';
  if (namesUpgrade) headers.push('Connection', `upgrade, ${option}`);
  else if (isDraining) headers.push('Connection', option);
}

/**
 * @param raw alternating names and values
 * @param added the gateway's own fields; if there are any, the upstream's limit headers are removed
 * @param status of the reply
 * @param exposesLimits pages of other origins may read the reply, so the limit headers are exposed to them
 */
export function clientHeaders(
  raw: readonly string[],
  added: readonly string[],
  status: number,
  exposesLimits: boolean,
): ClientHeaders {
  const headers: string[] = [];
  let hasContentLength = false;
  let isEventStream = false;
  let namesUpgrade = false;
  let isAllExposed = false;
  let dropped: ReadonlySet<string> | null = null;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const value = raw[i + 1] ?? '';
    const special = name.toLowerCase();
    if (SPECIAL.has(special)) {
      // RFC 9110 8.6 forbids this field here. A client that believes it would wait for a body.
      if (special === 'content-length' && (status < 200 || status === 204)) continue;
      if (special === 'content-length') hasContentLength = true;
      else if (special === 'content-type') isEventStream = EVENT_STREAM.test(value);
      else if (special === 'access-control-expose-headers') isAllExposed ||= exposesAll(value);
      else if (special === 'connection') {
        dropped = nominated(value, dropped);
        continue;
      } else if (special === 'upgrade') {
        // These two say in it which protocol follows, or is wanted (RFC 9110 15.2.2 and 15.5.22).
        if (status !== 101 && status !== 426) continue;
        namesUpgrade = true;
      } else if (!LIMITS.has(special) || added.length > 0) continue;
    }
    headers.push(name, value);
  }
  if (dropped !== null) {
    dropNominated(headers, dropped);
    isAllExposed &&= !dropped.has('access-control-expose-headers');
  }
  for (const item of added) headers.push(item);
  // The application may have sent this field too. Recipients join both (RFC 9110 5.2).
  if (exposesLimits && added.length > 0 && !isAllExposed) headers.push(EXPOSE_HEADER, EXPOSED_LIMITS);
  return { headers, hasContentLength, isEventStream, namesUpgrade };
}
