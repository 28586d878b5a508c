/** Requests that the parsers accept and the gateway refuses before it reads their path. */
import type { ClientRequest } from '#gateway/http/client-exchange.ts';
import { METHOD_NOT_ALLOWED } from '#gateway/listen/connection/socket-replies.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';

/** Without this limit, 16 KiB could hold 3,000 fields. They would cost a hundred times as much as a usual request. */
export const HEADER_FIELDS_MAX = 128;

const OTHER_VERSION = unreadReply(REASONS.otherVersion);
const CHUNKED_HTTP10 = unreadReply(REASONS.chunkedHttp10);
const TOO_MANY_FIELDS = unreadReply({
  code: REASONS.headerFields.code,
  text: REASONS.headerFields.text(HEADER_FIELDS_MAX),
});

/** @returns null if the request is fine */
export function unusualReply({ method, httpVersion, rawHeaders }: ClientRequest): OwnReply | null {
  if (rawHeaders.length > 2 * HEADER_FIELDS_MAX) return TOO_MANY_FIELDS;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return OTHER_VERSION;
  if (httpVersion === '1.0' && hasTransferCoding(rawHeaders)) return CHUNKED_HTTP10;
  return method === 'TRACE' ? METHOD_NOT_ALLOWED : null;
}

function hasTransferCoding(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'transfer-encoding');
}
