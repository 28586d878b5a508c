/**
 * The reply of a call, as it is written to the client.
 *
 * It is written at the end of the event-loop tick in which it begins. By then a typical API reply is complete and takes
 * one write. Of a longer reply the first part is written at once, so events and long polls are not delayed.
 */
import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { Millis } from '#shared/clock.ts';
import type { Exchange } from './exchange.ts';
import { ReplyFlow } from './reply-flow.ts';
import type { ClientHeaders } from './response-headers.ts';
import type { Upstream } from './upstream.ts';

/** Maximum size of a reply that is written as one string. For larger ones, copying costs more than a second write. */
const ONE_WRITE_BYTES = 16_384;
/** Valid reason phrases (RFC 9112 4). */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

interface RepliedCall {
  readonly request: { readonly req: ClientRequest; readonly res: ClientResponse };
  readonly client: Client;
  readonly upstream: Upstream;
}

export class ClientReply {
  /** Time when the first part was written; 0 before that. */
  streamingSince: Millis = 0;
  /** Bytes of the body that were written to the client. */
  sentBytes = 0;
  /** Whether all of the reply was received before any part of it was written. */
  isWhole = false;
  readonly #call: RepliedCall;
  readonly #exchange: Exchange;
  readonly #status: number;
  readonly #reason: string;
  readonly #head: ClientHeaders;
  /** Body data that arrived before the first write. */
  #received: Buffer | null = null;
  #flow: ReplyFlow | null = null;
  #isStreaming = false;

  constructor(call: RepliedCall, exchange: Exchange, status: number, reason: string, head: ClientHeaders) {
    this.#call = call;
    this.#exchange = exchange;
    this.#status = status;
    this.#reason = REASON_PHRASE.test(reason) ? reason : '';
    this.#head = head;
  }

  /** Whether a part of the reply was written. */
  get isStreaming(): boolean {
    return this.#isStreaming;
  }

  /** Takes a piece of the body. It may be empty afterwards, because its memory is given back when it is written. */
  add(chunk: Buffer): void {
    if (!this.#isStreaming) {
      const received = this.#received;
      if (received === null || received.length + chunk.length <= ONE_WRITE_BYTES) {
        this.#received = received === null ? chunk : Buffer.concat([received, chunk]);
        if (chunk.length > ONE_WRITE_BYTES) this.#flowOf().count(chunk.length);
        return;
      }
      this.startStreaming();
    }
    const flow = this.#flowOf();
    flow.count(chunk.length);
    this.#send(flow, chunk);
  }

  onDrain(): void {
    this.#flow?.onDrain();
  }

  /** Called when the whole reply has been received, and when the call is closed. */
  endFlow(): void {
    this.#flow?.end();
  }

  /** Writes the header section and the received part of the body. */
  startStreaming(): void {
    const { request, upstream } = this.#call;
    const { res } = request;
    this.#isStreaming = true;
    this.streamingSince = upstream.options.clock();
    res.writeHead(this.#status, this.#reason, this.#head.headers);
    const received = this.#received;
    this.#received = null;
    if (received === null) res.flushHeaders();
    else this.#send(this.#flowOf(), received);
  }

  #send(flow: ReplyFlow, piece: Buffer): void {
    this.sentBytes += piece.length;
    // Write last, because `write` empties the piece.
    flow.write(piece);
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

  #flowOf(): ReplyFlow {
    const { client, request, upstream } = this.#call;
    this.#flow ??= new ReplyFlow(client, request.res, upstream, this.#exchange);
    return this.#flow;
  }
}
