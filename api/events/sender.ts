/**
 * Sends a message to a receiver. Only this file knows undici, which it loads with the first message.
 *
 * An attempt has limits on its time, on the bytes of the reply that it reads, and on the addresses that it connects to.
 * The connection resolves names through `Targets`; literal addresses are checked before a socket is opened. Redirects
 * are not followed.
 *
 * Connections into private networks have a pool of their own, so that no message uses one that it could not have
 * opened.
 */
import { isIP, type LookupFunction } from 'node:net';
import type { Agent, buildConnector } from 'undici';
import { percentDecoded } from '#api/percent-encoding.ts';
import type { Millis } from '#shared/clock.ts';
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
  /** Whether the receiver is in a private network. Then only the operator may see its reply and its errors. */
  readonly isPrivate: boolean;
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

/** The target is not allowed. Owners of webhooks see the message. */
class TargetRefused extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'TargetRefused';
  }
}

export function createSender(targets: Targets, timeoutMs: Millis = ATTEMPT_TIMEOUT): Sender {
  let client: Promise<Client> | null = null;

  return {
    async close() {
      const agents = (await client?.catch(() => null))?.agents;
      await Promise.all([agents?.public.destroy(), agents?.operators.destroy()]);
    },
    async send({ url, headers, body, reach }) {
      let isPrivate = false;
      try {
        client ??= openClient(targets, timeoutMs);
        // Loading the library must not count against the receiver, so it happens before the clock starts.
        const { request, agents } = await client;
        const signal = AbortSignal.timeout(timeoutMs);
        const check = await targets.check(url, reach);
        if (check.kind === 'refused') throw new TargetRefused(check.reason);
        isPrivate = check.isPrivate;
        const { address, authorization } = withoutCredentials(new URL(url));
        const answer = await request(address, {
          // If a name changes from a public to a private address now, the connection refuses it. So a private reply is
          // never shown.
          dispatcher: agents[isPrivate ? 'operators' : 'public'],
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'user-agent': 'Floodgate-Webhooks/1',
            'accept-encoding': 'identity',
            ...authorization,
            ...headers,
          },
          body,
          signal,
        });
        const reply = await firstBytes(answer.body);
        return { ...resultOf(answer.statusCode, reply), isPrivate };
      } catch (error) {
        const isHung = isTimeout(error);
        const text = isHung ? `No answer within ${timeoutMs / 1_000} s` : explain(error);
        return { isDelivered: false, statusCode: null, reply: null, error: text, isHung, isPrivate };
      }
    },
  };
}

interface Client {
  readonly request: typeof import('undici').request;
  readonly agents: Readonly<Record<Reach, Agent>>;
}

async function openClient(targets: Targets, timeoutMs: Millis): Promise<Client> {
  const undici = await import('undici');
  const agentFor = (reach: Reach): Agent =>
    new undici.Agent({
      connect: checkedConnector(undici.buildConnector, targets, reach, timeoutMs),
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE,
      keepAliveMaxTimeout: KEEP_ALIVE,
      maxHeaderSize: ANSWER_HEADER_BYTES_MAX,
    });
  return {
    request: undici.request,
    agents: { public: agentFor('public'), operators: agentFor('operators') },
  };
}

/** Returns the result of a reply. Only 2xx counts as delivered. */
function resultOf(statusCode: number, reply: string): Omit<SendResult, 'isPrivate'> {
  const isRedirect = statusCode >= 300 && statusCode < 400;
  return {
    isDelivered: statusCode >= 200 && statusCode < 300,
    statusCode,
    reply,
    error: isRedirect ? 'Redirects are not followed; give the webhook the address that answers' : null,
    isHung: false,
  };
}

function checkedConnector(
  build: typeof buildConnector,
  targets: Targets,
  reach: Reach,
  timeoutMs: Millis,
): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, callback) => {
    targets.addressesOf(hostname, reach).then(
      (check) => {
        if (check.kind === 'refused') return callback(new TargetRefused(check.reason), '');
        const found = check.addresses.map((address) => ({ address, family: isIP(address) }));
        const [first] = found;
        if (options.all === true) return callback(null, found);
        callback(null, first?.address ?? '', first?.family ?? 0);
      },
      (error: Error) => callback(error, ''),
    );
  };
  const connect = build({ timeout: timeoutMs, lookup, allowH2: false, autoSelectFamily: true });
  return (options, callback) => {
    const host = options.hostname.replace(/^\[(.*)\]$/, '$1');
    // Literal addresses are not resolved, so they are checked here.
    if (isIP(host) === 0) return connect(options, callback);
    targets.addressesOf(host, reach).then(
      (check) => {
        if (check.kind === 'refused') callback(new TargetRefused(check.reason), null);
        else connect(options, callback);
      },
      (error: Error) => callback(error, null),
    );
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

const sentences: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'The connection was refused',
  ECONNRESET: 'The connection was closed before an answer',
  UND_ERR_SOCKET: 'The connection was closed before an answer',
  EHOSTUNREACH: 'The address cannot be reached',
  ENETUNREACH: 'The address cannot be reached',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the answer are too long',
};

function isTimeout(error: unknown): boolean {
  const name = error instanceof Error ? error.name : '';
  return name === 'TimeoutError' || name === 'AbortError' || codeOf(error) === 'UND_ERR_CONNECT_TIMEOUT';
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Returns own messages, because those of libraries contain addresses. */
function explain(error: unknown): string {
  if (error instanceof TargetRefused) return error.message;
  const code = codeOf(error);
  if (error instanceof Error && error.name === 'HTTPParserError') return 'The answer is not HTTP';
  return (
    sentences[code] ?? (code === '' ? 'The request failed' : `The request failed (${code.slice(0, 64)})`)
  );
}
