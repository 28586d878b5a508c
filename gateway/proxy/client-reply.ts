/**
 * The reply of a call, as it is written to the client.
 *
 * It is written at the end of the event-loop tick in which it begins. By then a typical API reply is complete and takes
 * one write. Of a longer reply the first part is written at once, so events and long polls are not delayed.
 */
import type { Client } from '#gateway/bounds/clients.ts';
import { writeLast } from '#gateway/http/free-buffer.ts';
import { headText } from '#gateway/http/head-text.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { Millis } from '#shared/clock.ts';
import type { ForwardedRequest, Passage } from './forwarded-request.ts';
import { keepRedirect } from './redirect.ts';
import { addConnection, type ClientHeaders, clientHeaders } from './response-headers.ts';
import type { SocketConnection } from './socket-connection.ts';
import { Flow } from './transfer-scheduler.ts';
import type { Upstream } from './upstream.ts';

/** Maximum size of a reply that is written as one string. For larger ones, copying costs more than a second write. */
const ONE_WRITE_BYTES = 16_384;

interface RepliedCall {
  readonly request: Pick<ForwardedRequest, 'req' | 'res' | 'exposesLimits'>;
  readonly client: Client;
  readonly upstream: Upstream;
  readonly passage: Passage;
}

/**
 * Writes an interim reply, such as 103 Early Hints (RFC 9110 15.2), at once, because the final reply may take long.
 * `reply-parser.ts` bounds their number and bytes, so they do not wait for a client that does not read.
 *
 * @param raw alternating names and values, as the parser has read them
 * @param added the gateway's fields for the final reply
 */
export function writeInterim(
  { req, res }: Pick<ForwardedRequest, 'req' | 'res'>,
  status: number,
  reason: string,
  raw: readonly string[],
  added: readonly string[],
): void {
  const { socket } = res;
  // Clients of HTTP/1.0 know no interim replies.
  if (req.httpVersion === '1.0' || res.headersSent || socket?.writable !== true) return;
  const { headers } = clientHeaders(raw, added, status, false);
  // The gateway's fields follow those of the application, and belong to the final reply.
  const fields = headers.slice(0, headers.length - added.length);
  socket.write(`${headText(`HTTP/1.1 ${status} ${reason}`, fields)}\r\n`, 'latin1');
}

export class ClientReply {
  /** Time when the first part was written; 0 before that. */
  streamingSince: Millis = 0;
  /** Bytes of the body that were written to the client. */
  sentBytes = 0;
  /** Whether all of the reply was received before any part of it was written. */
  isWhole = false;
  /** Whether a part of the reply was written. */
  isStreaming = false;
  readonly #call: RepliedCall;
  readonly #status: number;
  readonly #reason: string;
  readonly #head: ClientHeaders;
  /** Body data that arrived before the first write. */
  #received: Buffer | null = null;
  readonly #flow: Flow;

  /** @param fields of the upstream's reply, as alternating names and values */
  constructor(
    call: RepliedCall,
    connection: SocketConnection,
    status: number,
    reason: string,
    fields: readonly string[],
  ) {
    const { request, upstream, passage } = call;
    const head = clientHeaders(fields, passage.added, status, request.exposesLimits);
    keepRedirect(status, head.headers, passage.headers, upstream.address);
    addConnection(head, upstream.draining, request.res);
    this.#call = call;
    this.#flow = new Flow(call.client, call.upstream.scheduler, connection);
    this.#status = status;
    this.#reason = reason;
    this.#head = head;
  }

  /** Whether it is a stream of events. Then it lasts as long as the client listens. */
  get isEventStream(): boolean {
    return this.#head.isEventStream;
  }

  /** Takes a piece of the body. It may be empty afterwards, because its memory is given back when it is written. */
  add(chunk: Buffer): void {
    if (!this.isStreaming) {
      const received = this.#received;
      if (received === null || received.length + chunk.length <= ONE_WRITE_BYTES) {
        this.#received = received === null ? chunk : Buffer.concat([received, chunk]);
        if (chunk.length > ONE_WRITE_BYTES) this.#flow.count(chunk.length);
        return;
      }
      this.startStreaming();
    }
    this.#flow.count(chunk.length);
    this.#send(chunk);
  }

  onDrain(): void {
    this.#flow.onDrain();
  }

  /** Called when the whole reply has been received, and when the call is closed. */
  endFlow(): void {
    this.#flow.end();
  }

  /** Writes the header section and the received part of the body. */
  startStreaming(): void {
    const { request, upstream } = this.#call;
    const { res } = request;
    this.isStreaming = true;
    this.streamingSince = upstream.options.clock();
    res.writeHead(this.#status, this.#reason, this.#head.headers);
    const received = this.#received;
    this.#received = null;
    if (received === null) res.flushHeaders();
    else this.#send(received);
  }

  #send(piece: Buffer): void {
    const { request, upstream } = this.#call;
    this.sentBytes += piece.length;
    // Write last, because that empties the piece.
    const hasRoom = writeLast(request.res, piece, upstream.scheduler);
    if (!hasRoom && request.res.writableLength >= upstream.options.replyBufferBytes) this.#flow.awaitDrain();
  }

  /** Ends a reply that is streaming. */
  end(): void {
    this.#call.request.res.end();
    discardBody(this.#call.request.req.body);
  }

  /** Writes the complete reply, in one write if it is small. */
  writeWhole(): void {
    const { req, res } = this.#call.request;
    const { headers, hasContentLength } = this.#head;
    const status = this.#status;
    const body = this.#received;
    const hasBody = req.method !== 'HEAD' && status !== 204 && status !== 304;
    if (!hasContentLength && hasBody) headers.push('Content-Length', String(body?.length ?? 0));
    res.writeHead(status, this.#reason, headers);
    if (body === null || !hasBody) res.end();
    else {
      this.sentBytes = body.length;
      if (body.length <= ONE_WRITE_BYTES) res.end(body.toString('latin1'), 'latin1');
      else res.end(body);
    }
    discardBody(req.body);
  }

  /**
   * Breaks off the reply, which is the only way to tell the client that it is incomplete. If the body ends with the
   * connection (HTTP/1.0 without Content-Length), a normal close would look complete, so the socket is reset. With TLS,
   * which Node cannot reset, destroying it sends no close_notify, and that says the same (RFC 9112 9.8).
   */
  cut(): void {
    const { req, res } = this.#call.request;
    const { socket } = res;
    const endsWithSocket = req.httpVersion === '1.0' && !this.#head.hasContentLength;
    if (endsWithSocket && socket !== null && !('encrypted' in socket)) socket.resetAndDestroy();
    else res.destroy();
  }
}
