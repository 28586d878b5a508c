/** Replies that the gateway writes itself, and how they are written. */
import type { ClientResponse } from '#gateway/http/client-exchange.ts';
import { headText } from '#gateway/http/head-text.ts';
import { discardBody, lingeringClose } from '#gateway/http/lingering-close.ts';
import type { Millis } from '#shared/clock.ts';
import type { Cors } from './cors.ts';
import type { Page } from './page.ts';

export interface OwnReply {
  readonly status: number;
  readonly title: string;
  /** In UTF-8. Each code unit of the string stands for one byte. */
  readonly body: string;
  /** Alternating names and values, in addition to those of every reply. */
  readonly headers: readonly string[];
  /** Decides what pages of other origins may read. */
  readonly cors: Cors;
  /** Whether the connection closes after the reply. */
  readonly close: boolean;
}

/** Options for writing a refusal. */
export interface Framing extends Pick<OwnReply, 'cors' | 'close'> {
  /** Id of the refusal, for the header x-gateway-decision and the body; null if it has none. */
  readonly decision: string | null;
  /** The page for a browser; null for a JSON reply. */
  readonly page: Page | null;
}

/** Returns all headers of the reply, as alternating names and values. */
export function headersOf({ status, body, headers: own, cors, close }: OwnReply): string[] {
  const headers = [...own, 'Cache-Control', 'no-store'];
  if (status !== 204) headers.push('Content-Length', String(body.length));
  for (const item of cors.headers) headers.push(item);
  if (close) headers.push('Connection', 'close');
  return headers;
}

/** Joins repeated fields. @param headers alternating names and values */
export function recordOf(headers: readonly string[]): Record<string, string> {
  const record: Record<string, string> = {};
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = [headers[i], headers[i + 1]];
    const before = record[name];
    record[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return record;
}

export function sendOwn(res: ClientResponse, reply: OwnReply): void {
  const { req } = res;
  const { status, body, close } = reply;
  if (res.headersSent || res.destroyed) return;
  if (close) res.shouldKeepAlive = false;
  res.writeHead(status, headersOf(reply));
  if (close && !req.complete) {
    // After end() node:http would close the connection at once, which resets it while a body is still coming.
    if (req.method === 'HEAD' || body === '') res.flushHeaders();
    else res.write(Buffer.from(body, 'latin1'));
    if (res.entry !== null) res.entry.status = res.statusCode;
    lingeringClose(req.socket);
  } else res.end(body, 'latin1');
  discardBody(req.body);
}

/** Returns the whole reply, for a socket without a response of node:http. @param now on the wall clock */
export function rawReply(reply: OwnReply, now: Millis): Buffer {
  const headers = [...headersOf(reply), 'Date', new Date(now).toUTCString()];
  const head = headText(`HTTP/1.1 ${reply.status} ${reply.title}`, headers);
  return Buffer.from(`${head}\r\n${reply.body}`, 'latin1');
}
