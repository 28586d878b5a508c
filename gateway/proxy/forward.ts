/**
 * One request on its way to the upstream and back: undici's side of it is upstream.ts.
 *
 * An exchange is one object that is its own undici handler, so no closure is made per request. Bodies stream both ways
 * with backpressure. Replies go out at the end of the turn of the event loop in which they began, one after the other: one
 * that is whole by then, the usual API case, in one write, any other at once as far as it has come, so events and long
 * polls are not delayed (PERFORMANCE.md, "The data plane, step by step").
 */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Client, type Dispatcher, errors } from 'undici';
import type { ErrorCode } from '#gateway/errors.ts';
import { ownReply, sendOwn } from '#gateway/reply.ts';
import type { Millis } from '#shared/clock.ts';
import type { Due } from './deadlines.ts';
import { drain } from './drain.ts';
import type { CheckedHead } from './request-head.ts';
import { clientHeaders } from './response-headers.ts';
import { type Exchange, isStaleConnection, isTimeout, type Upstream } from './upstream.ts';
import { canWriteWhole, headText, writeWhole } from './whole-reply.ts';

/** Up to this size head and body go out as one string; beyond it copying costs more than a second write. */
const ONE_WRITE_BYTES = 16_384;
const ABORTED = new Error('the client is gone');
const TOO_LATE = new errors.HeadersTimeoutError('no reply in time, the wait for a connection included');
const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A response that knows its exchange, so that one shared listener serves all instead of a closure per request. */
export class ExchangeResponse extends ServerResponse {
  exchange: Forward | null = null;
}

function onClientClose(this: ServerResponse): void {
  (this as ExchangeResponse).exchange?.clientClosed();
}

function onClientDrain(this: ServerResponse): void {
  (this as ExchangeResponse).exchange?.clientReads();
}

/** One request, from admission to the last byte of its reply. */
export class Forward implements Exchange {
  readonly req: IncomingMessage;
  readonly res: ExchangeResponse;
  readonly upstream: Upstream;
  /** What is asked of the upstream: canonical path and query. */
  target = '';
  cors = false;
  /** The client waits for 100 Continue before it sends the body. */
  expectsContinue = false;
  /** The gateway's headers on the reply, names and values in turn. */
  added: readonly string[] = [];
  /** The upstream's status, 0 before there is one. */
  status = 0;
  /** Nothing more will be written: replied, or the client is gone. */
  done = false;
  /** The links of `upstream.deadlines`. An upload's time begins when it is over, by undici's headersTimeout. */
  dueAt: Millis = 0;
  earlier: Due | null = null;
  later: Due | null = null;

  #controller: Dispatcher.DispatchController | null = null;
  #request: Dispatcher.DispatchOptions | null = null;
  #retryable = false;
  #connection: Client | null = null;
  /** Set while the client does not read. */
  #stalled: NodeJS.Timeout | null = null;
  #head: string[] | null = null;
  #statusText = '';
  #hasContentLength = false;
  #hasDate = false;
  /** What came of the body before anything was written. */
  #part: Buffer | null = null;
  #streaming = false;
  /** The whole reply is there. */
  #ended = false;

  constructor(req: IncomingMessage, res: ExchangeResponse, upstream: Upstream) {
    this.req = req;
    this.res = res;
    this.upstream = upstream;
    res.exchange = this;
    res.on('close', onClientClose);
  }

  /**
   * Sends the request on; a saturated upstream is answered with 503.
   *
   * @param headers for the upstream, names and values in turn
   */
  forward(head: CheckedHead, headers: string[]): void {
    if (this.done) return;
    const { req, upstream } = this;
    if (upstream.saturated) {
      this.fail('gateway_overloaded', 'too many requests wait for the upstream; try again later');
      return;
    }
    if (this.expectsContinue) {
      this.res.writeContinue();
      this.expectsContinue = false;
    }
    this.#retryable = !head.hasBody && RETRIED_METHODS.has(req.method ?? '');
    const request: Dispatcher.DispatchOptions & { servername: string } = {
      path: this.target,
      method: (req.method ?? 'GET') as Dispatcher.HttpMethod,
      headers,
      body: head.hasBody ? this.#body(head.contentLength) : null,
      // Otherwise undici closes the connection after every HEAD.
      reset: false,
      servername: this.upstream.servername,
    };
    const protocol = this.upgradeTo();
    if (protocol !== null) request.upgrade = protocol;
    this.#request = request;
    // undici's own timers are up to a second late, and begin with the connection.
    upstream.deadlines.add(this);
    upstream.enter(this);
  }

  /** The protocol that the client wants to switch to, if any. */
  protected upgradeTo(): string | null {
    return null;
  }

  /** The connection ends with this reply: we are shutting down, or the client holds back the body it announced. */
  protected get closes(): boolean {
    return this.upstream.draining || this.expectsContinue;
  }

  /** The upstream's reply has begun. */
  protected onReply(_status: number): void {
    // For the enforcement to learn from.
  }

  /** Answers in the gateway's own name. */
  fail(code: ErrorCode, message: string, close = false): void {
    if (this.done) return;
    this.done = true;
    sendOwn(
      this.req,
      this.res,
      ownReply(code, message, {
        cors: this.cors,
        close: close || this.closes,
        headers: this.added,
      }),
    );
  }

  /** A small body that has arrived with its head needs no stream: one write instead of an iterator's machinery. */
  #body(contentLength: number | null): NonNullable<Dispatcher.DispatchOptions['body']> {
    const { req } = this;
    if (req.complete && contentLength !== null && contentLength === req.readableLength) {
      // Without a size it gives the first piece only.
      return req.read(contentLength) as Buffer;
    }
    // Not the request itself: undici destroys a body that it stops reading, and with it the client's socket.
    return req.iterator({ destroyOnReturn: false }) as unknown as NonNullable<
      Dispatcher.DispatchOptions['body']
    >;
  }

  /** A connection is free. Errors, undici's objections to the request included, come to onResponseError. */
  dispatch(connection: Client): void {
    if (this.#request === null) return;
    this.#connection = connection;
    connection.dispatch(this.#request, this);
  }

  /** The upstream has no more to say to this request: its connection serves the next one. */
  protected leaveUpstream(): void {
    this.upstream.deadlines.delete(this);
    const connection = this.#connection;
    if (connection === null) return;
    this.#connection = null;
    this.upstream.release(connection);
  }

  giveUp(): void {
    if (this.#controller !== null) {
      this.#controller.abort(TOO_LATE);
      return;
    }
    // Not yet on a connection: undici will find us done when it has one.
    this.upstream.leave(this);
    this.#answerError(TOO_LATE);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Thrown rather than aborted: undici then drops the request and keeps the connection for the next one.
    if (this.done) throw ABORTED;
    this.#controller = controller;
    const body = this.#request?.body ?? null;
    if (body !== null && !Buffer.isBuffer(body)) this.upstream.deadlines.delete(this);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    _headers: unknown,
    statusText?: string,
  ): void {
    // Interim replies (103 Early Hints) end here.
    if (statusCode < 200) return;
    this.upstream.deadlines.delete(this);
    this.status = statusCode;
    this.onReply(statusCode);
    this.#statusText = statusText !== undefined && REASON_PHRASE.test(statusText) ? statusText : '';
    const raw = (controller.rawHeaders ?? []) as Buffer[];
    const { headers, hasContentLength, hasDate } = clientHeaders(raw, this.added, this.cors);
    if (this.upstream.draining) headers.push('Connection', 'close');
    this.#head = headers;
    this.#hasContentLength = hasContentLength;
    this.#hasDate = hasDate;
    this.upstream.begin(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.done) return;
    if (!this.#streaming) {
      const part = this.#part;
      if (part === null || part.length + chunk.length <= ONE_WRITE_BYTES) {
        this.#part = part === null ? chunk : Buffer.concat([part, chunk]);
        return;
      }
      this.#startStreaming();
    }
    this.#write(chunk, controller);
  }

  #write(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    if (this.res.write(chunk)) return;
    controller.pause();
    this.#stalled ??= setTimeout(() => this.res.destroy(), this.upstream.idleMs);
  }

  clientReads(): void {
    if (this.#stalled === null) return;
    clearTimeout(this.#stalled);
    this.#stalled = null;
    this.#controller?.resume();
  }

  onResponseEnd(): void {
    this.leaveUpstream();
    if (this.done) return;
    if (this.#streaming) {
      this.done = true;
      this.res.end();
      drain(this.req);
      return;
    }
    this.#ended = true;
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const connection = this.#connection;
    const isRetryable = this.#retryable && this.#head === null && isStaleConnection(error);
    if (!this.done && isRetryable && connection !== null) {
      this.#retryable = false;
      this.#controller = null;
      this.dispatch(connection);
      return;
    }
    this.leaveUpstream();
    this.#answerError(error);
  }

  #answerError(error: Error): void {
    if (this.done) return;
    if (this.#streaming) {
      this.done = true;
      this.#cut();
      return;
    }
    this.#head = null;
    if (this.req.errored !== null) {
      this.fail('gateway_bad_request', 'the request body broke off', true);
    } else if (isTimeout(error)) {
      this.upstream.timeouts++;
      this.fail('gateway_upstream_timeout', 'the upstream did not answer in time');
    } else {
      this.upstream.unavailable++;
      this.fail('gateway_upstream_unavailable', 'the upstream cannot be reached or broke off its reply');
    }
  }

  /** The reply is cut; only a broken connection tells the client so, and where its end is the body's end, only a reset. */
  #cut(): void {
    const { req, res } = this;
    if (req.httpVersion === '1.0' && !this.#hasContentLength) res.socket?.resetAndDestroy();
    else res.destroy();
  }

  /** Whole replies in one write. From here on the others stream. */
  writeReply(): void {
    if (this.#ended) this.#writeWhole();
    else this.#startStreaming();
  }

  #writeWhole(): void {
    const head = this.#head;
    if (this.done || head === null) return;
    this.done = true;
    const { res, status } = this;
    const part = this.#part;
    const bodiless = this.req.method === 'HEAD' || status === 204 || status === 304;
    if (!this.#hasContentLength && !bodiless) head.push('Content-Length', String(part?.length ?? 0));
    const isSmall = part !== null && !bodiless && part.length <= ONE_WRITE_BYTES;
    if (isSmall && this.#hasDate && !this.upstream.draining && canWriteWhole(this.req, res)) {
      writeWhole(res, headText(status, this.#statusText, head), part.toString('latin1'));
    } else {
      res.writeHead(status, this.#statusText, head);
      if (part === null || bodiless) res.end();
      else if (isSmall) res.end(part.toString('latin1'), 'latin1');
      else res.end(part);
    }
    drain(this.req);
  }

  #startStreaming(): void {
    const head = this.#head;
    if (this.done || this.#streaming || head === null) return;
    this.#streaming = true;
    const { res } = this;
    res.on('drain', onClientDrain);
    res.writeHead(this.status, this.#statusText, head);
    const part = this.#part;
    this.#part = null;
    if (part === null) res.flushHeaders();
    else if (this.#controller !== null) this.#write(part, this.#controller);
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _statusCode: number,
    _headers: unknown,
    socket: Duplex,
  ): void {
    this.leaveUpstream();
    // Not asked for: nothing is upgraded behind the client's back.
    socket.destroy();
    this.fail('gateway_upstream_unavailable', 'the upstream switched protocols unasked');
  }

  clientClosed(): void {
    if (this.#stalled !== null) clearTimeout(this.#stalled);
    if (this.done) return;
    this.done = true;
    if (this.#controller !== null) {
      this.#controller.abort(ABORTED);
      return;
    }
    this.upstream.leave(this);
    this.upstream.deadlines.delete(this);
  }
}

/** What may stand behind a status; undici reads it as UTF-8, so other encodings come with characters that may not. */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;
