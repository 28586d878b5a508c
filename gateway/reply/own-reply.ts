/**
 * Replies that the gateway writes itself. Their bodies are problem+json (RFC 9457). Existing clients expect the members
 * `message` (string) and `details` (object).
 */
import type { ClientRequest, WritableResponse } from '#gateway/http/client-exchange.ts';
import { DECISION_HEADER } from '#gateway/http/header-names.ts';
import { discardBody, lingeringClose } from '#gateway/http/lingering-close.ts';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import type { Millis } from '#shared/clock.ts';
import { type Cors, NO_CORS, UNREAD } from './cors.ts';
import { OWN_PAGE, type Page } from './page.ts';

export interface OwnReply {
  readonly status: number;
  readonly title: string;
  readonly contentType: string;
  readonly body: string;
  /** The body in UTF-8. Each code unit of the string stands for one byte. */
  readonly bodyBytes: string;
  /** Alternating names and values, in addition to those of every reply. */
  readonly headers: readonly string[];
  /** Decides what pages of other origins may read. */
  readonly cors: Cors;
  /** Whether the connection closes after the reply. */
  readonly close: boolean;
}

interface OwnReplyOptions {
  /** Alternating names and values, behind those of the code. */
  readonly headers?: readonly string[];
  readonly cors?: Cors;
  readonly close?: boolean;
  /** Id of a refusal, for the header x-gateway-decision and the body; null if it has none. */
  readonly decision?: string | null;
  /** Additional members of the body. */
  readonly extra?: object;
  /** The page for a browser; null for a JSON body. */
  readonly page?: Page | null;
  /** Names of the denying policies. */
  readonly policy?: string;
}

export function ownReply(code: ErrorCode, message: string, options: OwnReplyOptions = {}): OwnReply {
  const { cors = NO_CORS, close = false, decision = null, extra, page = null } = options;
  const { status, title } = CODES[code];
  const headers = [...CODES[code].headers, ...(options.headers ?? [])];
  if (decision !== null) headers.push(DECISION_HEADER, decision);
  if (page === null) {
    const body = problemBody(code, message, decision === null ? extra : { ...extra, decision });
    return { status, title, contentType: 'application/problem+json', ...bodyOf(body), headers, cors, close };
  }
  const waitAt = headers.indexOf('Retry-After') + 1;
  const seconds = waitAt === 0 ? null : Number(headers[waitAt]);
  // An operator's page shows the time to wait. Without a time, use the gateway's own page.
  const fitting = seconds === null ? OWN_PAGE : page;
  const html = fitting.contentOf({ code, message, seconds, decision, policy: options.policy ?? '' });
  return {
    status,
    title,
    contentType: 'text/html; charset=utf-8',
    ...bodyOf(html),
    headers: [...headers, ...fitting.headers],
    cors,
    close,
  };
}

/** @param extra further members */
function problemBody(code: ErrorCode, message: string, extra: object = {}): string {
  const { status, title, type } = CODES[code];
  const body = JSON.stringify({ type, title, status, detail: message, code, message, details: {}, ...extra });
  // JSON text may contain DEL. A header field, which may carry the body, must not.
  return body.replaceAll('\x7f', '\\u007f');
}

function bodyOf(body: string): Pick<OwnReply, 'body' | 'bodyBytes'> {
  return { body, bodyBytes: Buffer.from(body).toString('latin1') };
}

/** Answers bytes that could not be read as a request. The writer of the reply looks for the origin of the page. */
export function unreadReply({ code, text }: { readonly code: ErrorCode; readonly text: string }): OwnReply {
  return ownReply(code, text, { cors: UNREAD, close: true });
}

/** Returns all headers of the reply, as alternating names and values. */
export function headersOf(reply: OwnReply): string[] {
  const headers = [
    'Content-Type',
    reply.contentType,
    'Content-Length',
    String(reply.bodyBytes.length),
    'Cache-Control',
    'no-store',
  ];
  for (const item of reply.headers) headers.push(item);
  for (const item of reply.cors.headers) headers.push(item);
  if (reply.close) headers.push('Connection', 'close');
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

export type AnsweredRequest = Pick<ClientRequest, 'method' | 'complete' | 'socket' | 'body'>;

export function sendOwn(req: AnsweredRequest, res: WritableResponse, reply: OwnReply): void {
  if (res.headersSent || res.destroyed) return;
  if (reply.close) res.shouldKeepAlive = false;
  res.writeHead(reply.status, headersOf(reply));
  sendBody(req, res, reply.close, reply.bodyBytes);
}

/** Ends a reply whose head is given. @param close the connection closes after it */
export function sendBody(
  req: AnsweredRequest,
  res: WritableResponse,
  close: boolean,
  bodyBytes: string,
): void {
  if (close && !req.complete) {
    // After end() node:http would close the connection at once, which resets it while a body is still coming.
    if (req.method === 'HEAD' || bodyBytes === '') res.flushHeaders();
    else res.write(bodyBytes, 'latin1');
    const { entry = null } = res;
    if (entry !== null) entry.status = res.statusCode;
    lingeringClose(req.socket);
  } else res.end(bodyBytes, 'latin1');
  discardBody(req.body);
}

/** Returns the reply as text, for a socket without a response of node:http. @param now on the wall clock */
export function rawReply(reply: OwnReply, now: Millis): string {
  const headers = [...headersOf(reply), 'Date', new Date(now).toUTCString()];
  let text = `HTTP/1.1 ${reply.status} ${reply.title}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n${reply.body}`;
}
