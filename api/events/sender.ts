/**
 * Sends a message to a receiver.
 *
 * An attempt has limits on its time, on the bytes of the reply that it reads, and on the addresses that it connects to.
 * The connection resolves names through `Targets`. Literal addresses are not resolved, so the check before each attempt
 * is enough for them. Redirects are not followed.
 *
 * The operator's organization has a pool of connections of its own, so that no message uses one that it could not have
 * opened.
 */
import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps, Agent as TlsAgent } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { ApiError } from '#api/errors.ts';
import { percentDecoded } from '#api/values/percent-encoding.ts';
import type { Millis } from '#shared/clock.ts';
import { timeLimit } from '#shared/within.ts';
import type { Reach, Targets } from './targets.ts';

interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body as JSON. */
  readonly body: string;
  /** The networks that the organization of the webhook may reach. */
  readonly reach: Reach;
}

export interface SendResult {
  readonly isDelivered: boolean;
  /** Status of the reply; null without a reply. */
  readonly statusCode: number | null;
  /** The first KiB of the reply's body. null without a reply. */
  readonly reply: string | null;
  /** The reason for the failure, unless the status tells it. Owners of webhooks see this text. */
  readonly error: string | null;
  /** Whether there was no reply in time. */
  readonly isHung: boolean;
  /** The header `Retry-After` of a 429 or a 503, as it was sent. */
  readonly retryAfter: string | null;
}

export interface Sender {
  /** Sends a message. Never rejects, because the failure of a receiver is a result. */
  send(message: Message): Promise<SendResult>;
  close(): Promise<void>;
}

/** The time for the whole attempt, including DNS and reading the reply. */
const ATTEMPT_TIMEOUT: Millis = 5_000;
const REPLY_BYTES_MAX = 1_024;
/** Idle connections are kept for a shorter time than by most receivers, so that the API closes them first. */
const KEEP_ALIVE: Millis = 4_000;
const ANSWER_HEADER_BYTES_MAX = 16_384;

export function createSender(targets: Targets, timeoutMs: Millis = ATTEMPT_TIMEOUT): Sender {
  const agents = { public: agentsFor(targets, 'public'), operators: agentsFor(targets, 'operators') };

  return {
    async close() {
      for (const { plain, tls } of Object.values(agents)) {
        plain.destroy();
        tls.destroy();
      }
    },
    async send({ url, headers, body, reach }) {
      try {
        const signal = timeLimit(timeoutMs);
        await targets.check(url, reach);
        const { address, authorization } = withoutCredentials(new URL(url));
        const answer = await post(address, agents[reach], body, signal, {
          'content-type': 'application/json',
          'user-agent': 'Floodgate-Webhooks/1',
          'accept-encoding': 'identity',
          ...authorization,
          ...headers,
        });
        const reply = await firstBytes(answer);
        return resultOf(answer, reply);
      } catch (error) {
        const isHung = isTimeout(error);
        const text = isHung ? `No answer within ${timeoutMs / 1_000} s` : explain(error);
        const none = { statusCode: null, reply: null, retryAfter: null };
        return { isDelivered: false, ...none, error: text, isHung };
      }
    },
  };
}

interface Agents {
  readonly plain: Agent;
  readonly tls: TlsAgent;
}

function agentsFor(targets: Targets, reach: Reach): Agents {
  const lookup: LookupFunction = (hostname, options, callback) => {
    targets.addressesOf(hostname, reach).then(
      (addresses) => {
        const found = addresses.map((address) => ({ address, family: isIP(address) }));
        const [first] = found;
        if (options.all === true) return callback(null, found);
        callback(null, first?.address ?? '', first?.family ?? 0);
      },
      (error: Error) => callback(error, ''),
    );
  };
  const options = { keepAlive: true, timeout: KEEP_ALIVE, lookup, autoSelectFamily: true };
  return { plain: new Agent(options), tls: new TlsAgent(options) };
}

/** Resolves with the start of the reply. */
function post(
  url: URL,
  { plain, tls }: Agents,
  body: string,
  signal: AbortSignal,
  headers: Readonly<Record<string, string>>,
): Promise<IncomingMessage> {
  const options = { method: 'POST', headers, signal, maxHeaderSize: ANSWER_HEADER_BYTES_MAX };
  return new Promise((resolve, reject) => {
    const request =
      url.protocol === 'https:'
        ? requestHttps(url, { ...options, agent: tls })
        : requestHttp(url, { ...options, agent: plain });
    // An unasked protocol switch is neither an error nor a response, only the end.
    const onClose = (): void => reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
    request.on('error', reject).on('response', resolve).on('close', onClose).end(body);
  });
}

/** Returns the result of a reply. Only 2xx counts as delivered. */
function resultOf({ statusCode = 0, headers }: IncomingMessage, reply: string): SendResult {
  const isRedirect = statusCode >= 300 && statusCode < 400;
  return {
    isDelivered: statusCode >= 200 && statusCode < 300,
    statusCode,
    reply,
    error: isRedirect ? 'Redirects are not followed; give the webhook the address that answers' : null,
    isHung: false,
    retryAfter: statusCode === 429 || statusCode === 503 ? (headers['retry-after'] ?? null) : null,
  };
}

/** Removes the credentials from a URL. HTTP clients send them in a header (RFC 9110 11.7). */
function withoutCredentials(url: URL): { address: URL; authorization: Record<string, string> } {
  const { username, password } = url;
  if (username === '' && password === '') return { address: url, authorization: {} };
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const credentials = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return {
    address,
    authorization: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  };
}

/** Returns the first bytes. The status already decides the result, so an error while reading only shortens the text. */
async function firstBytes(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= REPLY_BYTES_MAX) break;
    }
  } catch {
    // The reply was cut, or the time is over.
  }
  // PostgreSQL cannot store NUL in text.
  return Buffer.concat(chunks).subarray(0, REPLY_BYTES_MAX).toString('utf8').replaceAll('\0', '\uFFFD');
}

function isTimeout(error: unknown): boolean {
  const name = error instanceof Error ? error.name : '';
  return name === 'TimeoutError' || name === 'AbortError';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Returns own messages, because those of libraries contain addresses. */
function explain(error: unknown): string {
  // The target is not allowed.
  if (error instanceof ApiError) return error.message;
  const code = codeOf(error);
  return code === '' ? 'The request failed' : `The request failed (${code.slice(0, 64)})`;
}
