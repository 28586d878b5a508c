/** Replies to unusual requests, to bytes that node:http cannot parse, and to a body that does not arrive. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { originAmong } from '#gateway/http/page-origin.ts';
import { type EntryLog, unreadableLine } from '#gateway/observe/log-line.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { outcomeOf, REASONS } from '#gateway/refusals/reasons.ts';
import type { CorsTable } from '#gateway/reply/cors.ts';
import { type OwnReply, rawReply } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Clock } from '#shared/clock.ts';

/** Without this limit, 16 KiB could hold 3,000 fields. They would cost a hundred times as much as a usual request. */
export const HEADER_FIELDS_MAX = 128;

export const METHOD_NOT_ALLOWED = unreadReply(REASONS.method);
const MALFORMED = unreadReply(REASONS.notHttp1);
const OTHER_VERSION = unreadReply(REASONS.otherVersion);
const CHUNKED_HTTP10 = unreadReply(REASONS.chunkedHttp10);
const TOO_MANY_FIELDS = unreadReply({
  code: REASONS.headerFields.code,
  text: REASONS.headerFields.text(HEADER_FIELDS_MAX),
});

interface SocketRepliesOptions {
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  /** The access log; null if it is off. */
  readonly accessLog: EntryLog | null;
  readonly metrics: Metrics;
  readonly cors: () => CorsTable;
  readonly wallClock: Clock;
  readonly headerBytesMax: number;
}

/** An error of node:http's parser. */
interface ReadError extends NodeJS.ErrnoException {
  /** The bytes that it could not read. */
  readonly rawPacket?: Uint8Array;
}

export class SocketReplies {
  readonly #options: SocketRepliesOptions;
  readonly #parseErrors: Readonly<Record<string, OwnReply>>;

  constructor(options: SocketRepliesOptions) {
    this.#options = options;
    const { code, text } = REASONS.headerBytes;
    this.#parseErrors = {
      HPE_HEADER_OVERFLOW: unreadReply({ code, text: text(options.headerBytesMax) }),
      ERR_HTTP_REQUEST_TIMEOUT: unreadReply(REASONS.slowRequest),
    };
  }

  /** Called if node:http could not read a request, or not in time. */
  onClientError({ code = '', rawPacket }: ReadError, socket: Duplex): void {
    // The reply was written, and closeUnread() waits for the end of the connection.
    if (socket.writableEnded && !socket.destroyed) return;
    if (code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else this.refuse(socket, this.#parseErrors[code] ?? MALFORMED, rawPacket);
  }

  /**
   * Replies and closes the connection. If the request has a reply already, or another one is due, it only closes: the
   * client could mistake one for the other, and the request would count twice.
   *
   * @param unread bytes of the request, if its head was not read
   */
  refuse(socket: Duplex, reply: OwnReply, unread?: Uint8Array): void {
    const connection = this.#options.connections.get(socket as Socket);
    const pending = connection?.pending ?? null;
    if (connection?.isBodyDue === true) closeUnread(socket);
    else if (pending?.headersSent === true) {
      // A reply of the gateway itself is already complete. A reply from the upstream is cut here.
      if (pending.exchange?.isClosed === false) socket.destroy();
      else closeUnread(socket);
    } else if (pending?.req.complete === true) {
      // The unreadable bytes came after a whole request. That request is answered, and then the connection closes.
      pending.shouldKeepAlive = false;
    } else {
      pending?.exchange?.close();
      this.#record(pending, reply.status);
      const table = this.#options.cors();
      const cors =
        pending === null
          ? table.forOrigin(unread === undefined ? null : originAmong(unread))
          : table.unread(pending.req.rawHeaders);
      closeUnread(socket, rawReply({ ...reply, cors }, this.#options.wallClock()));
    }
  }

  #record(pending: ClientResponse | null, status: number): void {
    const { accessLog, metrics, wallClock } = this.#options;
    if (pending !== null) {
      // It was counted when its head was read.
      if (pending.entry !== null) pending.entry.status = status;
      return;
    }
    metrics.requests.of(outcomeOf(REASONS.malformed)).value++;
    if (accessLog?.takes() === true) accessLog.write(unreadableLine(status, wallClock()));
  }
}

/**
 * Answers a request that the parsers accept and the gateway refuses before it reads its path.
 *
 * @returns null if the request is fine
 */
export function unusualReply({ method, httpVersion, rawHeaders }: ClientRequest): OwnReply | null {
  if (rawHeaders.length > 2 * HEADER_FIELDS_MAX) return TOO_MANY_FIELDS;
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return OTHER_VERSION;
  if (httpVersion === '1.0' && hasTransferCoding(rawHeaders)) return CHUNKED_HTTP10;
  return method === 'TRACE' ? METHOD_NOT_ALLOWED : null;
}

function hasTransferCoding(rawHeaders: readonly string[]): boolean {
  return rawHeaders.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'transfer-encoding');
}
