/**
 * One request on its way to the upstream and back: the only file that knows undici.
 *
 * An exchange is one object that is its own undici handler, so no closure is made per request. Bodies stream both ways
 * with backpressure. A reply that arrives whole in one read, the usual API case, leaves in one write together with the
 * others of that turn of the event loop; a reply that does not is flushed at once, so events and long polls are not
 * delayed (PERFORMANCE.md, "The data plane, step by step").
 */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Dispatcher, errors, Pool } from 'undici';
import type { Millis } from '#gateway/clock.ts';
import type { ErrorCode } from '#gateway/errors.ts';
import { ownReply, sendOwn } from '#gateway/reply.ts';
import { drain } from './drain.ts';
import { type RequestOrigin, upstreamHeaders } from './request-headers.ts';
import { clientHeaders } from './response-headers.ts';

export interface UpstreamOptions {
  /** http://host:port of the upstream; https: for TLS. */
  readonly origin: string;
  /** Until a connection and the head of the reply are there, each. Also bounds the wait for a free connection. */
  readonly timeoutMs: Millis;
  readonly connections?: number;
}

export interface UpstreamStats {
  /** Requests that wait for a free connection. */
  readonly waiting: number;
  readonly unavailable: number;
  readonly timeouts: number;
}

const CONNECTIONS = 256;
const CONNECT_TIMEOUT_MS: Millis = 3000;
/** Between two pieces of a reply's body: finite, or a connection that lost its peer is never given back. */
const BODY_IDLE_MS: Millis = 300_000;
const WAITING_MAX = 10_000;
/** Up to this size head and body go out as one string; beyond it copying costs more than a second write. */
const ONE_WRITE_BYTES = 16_384;

/** The upstream's connections, and what all exchanges share. */
export class Upstream {
  readonly pool: Pool;
  readonly timeoutMs: Millis;
  waiting = 0;
  unavailable = 0;
  timeouts = 0;
  /** Told to every reply: we are shutting down, open no further request on this connection. */
  draining = false;
  #finished: Forward[] = [];

  constructor(options: UpstreamOptions) {
    this.timeoutMs = options.timeoutMs;
    this.pool = new Pool(options.origin, {
      connections: options.connections ?? CONNECTIONS,
      pipelining: 1,
      connect: { timeout: Math.min(CONNECT_TIMEOUT_MS, options.timeoutMs) },
      headersTimeout: options.timeoutMs,
      bodyTimeout: BODY_IDLE_MS,
    });
  }

  get saturated(): boolean {
    return this.waiting >= WAITING_MAX;
  }

  finish(exchange: Forward): void {
    if (this.#finished.push(exchange) === 1) setImmediate(() => this.#flush());
  }

  stats(): UpstreamStats {
    return { waiting: this.waiting, unavailable: this.unavailable, timeouts: this.timeouts };
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }

  #flush(): void {
    const finished = this.#finished;
    this.#finished = [];
    for (const exchange of finished) exchange.writeWhole();
  }
}

const ABORTED = new Error('the client is gone');
const WAITED_TOO_LONG = new errors.HeadersTimeoutError('no free upstream connection in time');
const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A response that knows its exchange, so that one shared listener serves all instead of a closure per request. */
export class ExchangeResponse extends ServerResponse {
  exchange: Forward | null = null;
}

function onClientClose(this: ServerResponse): void {
  (this as ExchangeResponse).exchange?.clientClosed();
}

/** One request, from admission to the last byte of its reply. */
export class Forward implements Dispatcher.DispatchHandler {
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

  #controller: Dispatcher.DispatchController | null = null;
  #request: Dispatcher.DispatchOptions | null = null;
  #retryable = false;
  #waitTimer: NodeJS.Timeout | null = null;
  #head: string[] | null = null;
  #statusText = '';
  #hasContentLength = false;
  /** What came of the body before anything was written. */
  #part: Buffer | null = null;
  #streaming = false;
  #finishing = false;

  constructor(req: IncomingMessage, res: ExchangeResponse, upstream: Upstream) {
    this.req = req;
    this.res = res;
    this.upstream = upstream;
    res.exchange = this;
    res.on('close', onClientClose);
  }

  /** Sends the request on. Bad framing is answered with 400, a saturated upstream with 503. */
  forward(origin: RequestOrigin): void {
    if (this.done) return;
    const { req, upstream } = this;
    const head = upstreamHeaders(req.rawHeaders, origin);
    if (!head.ok) {
      this.fail('gateway_bad_request', head.reason, true);
      return;
    }
    if (upstream.saturated) {
      this.fail('gateway_overloaded', 'too many requests wait for the upstream; try again later');
      return;
    }
    if (this.expectsContinue) this.res.writeContinue();
    this.#retryable = !head.hasBody && RETRIED_METHODS.has(req.method ?? '');
    const request: Dispatcher.DispatchOptions = {
      path: this.target,
      method: (req.method ?? 'GET') as Dispatcher.HttpMethod,
      headers: head.headers,
      body: head.hasBody ? this.#body(head.contentLength) : null,
      // Otherwise undici closes the connection after every HEAD.
      reset: false,
    };
    const protocol = this.upgradeTo();
    if (protocol !== null) request.upgrade = protocol;
    this.#request = request;
    this.#dispatch();
  }

  /** The protocol that the client wants to switch to, if any. */
  protected upgradeTo(): string | null {
    return null;
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
        close: close || this.upstream.draining,
        headers: this.added,
      }),
    );
  }

  /** A small body that has arrived with its head needs no stream: one write instead of an iterator's machinery. */
  #body(contentLength: number | null): NonNullable<Dispatcher.DispatchOptions['body']> {
    const { req } = this;
    if (req.complete && contentLength !== null && contentLength === req.readableLength) {
      return req.read() as Buffer;
    }
    // Not the request itself: undici destroys a body that it stops reading, and with it the client's socket.
    return req.iterator({ destroyOnReturn: false }) as unknown as NonNullable<
      Dispatcher.DispatchOptions['body']
    >;
  }

  #dispatch(): void {
    const request = this.#request;
    if (request === null) return;
    try {
      this.upstream.pool.dispatch(request, this);
    } catch (cause) {
      this.onResponseError(null, cause as Error);
      return;
    }
    if (this.#controller === null && !this.done) this.#wait();
  }

  /** No connection is free: the wait counts against the same time budget as the reply. */
  #wait(): void {
    this.upstream.waiting++;
    this.#waitTimer = setTimeout(() => {
      this.#waited();
      this.onResponseError(null, WAITED_TOO_LONG);
    }, this.upstream.timeoutMs);
  }

  #waited(): void {
    if (this.#waitTimer === null) return;
    clearTimeout(this.#waitTimer);
    this.#waitTimer = null;
    this.upstream.waiting--;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#waited();
    if (this.done) controller.abort(ABORTED);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    _headers: unknown,
    statusText?: string,
  ): void {
    // Interim replies (103 Early Hints) end here.
    if (statusCode < 200) return;
    this.status = statusCode;
    this.onReply(statusCode);
    this.#statusText = statusText ?? '';
    const raw = (controller.rawHeaders ?? []) as Buffer[];
    const { headers, hasContentLength } = clientHeaders(raw, this.added, this.cors);
    if (this.upstream.draining) headers.push('Connection', 'close');
    this.#head = headers;
    this.#hasContentLength = hasContentLength;
    process.nextTick(writeHeadIfStreaming, this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.done) return;
    if (!this.#streaming) {
      this.#part = this.#part === null ? chunk : Buffer.concat([this.#part, chunk]);
      return;
    }
    if (!this.res.write(chunk)) {
      controller.pause();
      this.res.once('drain', () => controller.resume());
    }
  }

  onResponseEnd(): void {
    if (this.done) return;
    if (this.#streaming) {
      this.done = true;
      this.res.end();
      drain(this.req);
      return;
    }
    this.#finishing = true;
    this.upstream.finish(this);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#waited();
    if (this.done) return;
    if (this.#streaming) {
      // The reply is cut; only a broken connection tells the client so.
      this.done = true;
      this.res.destroy();
      return;
    }
    if (this.#retryable && this.#head === null && isStaleConnection(error)) {
      this.#retryable = false;
      this.#controller = null;
      this.#dispatch();
      return;
    }
    this.#head = null;
    const badBody = error instanceof errors.RequestContentLengthMismatchError || this.req.errored !== null;
    if (badBody) {
      this.fail('gateway_bad_request', 'the request body does not have the announced length', true);
    } else if (isTimeout(error)) {
      this.upstream.timeouts++;
      this.fail('gateway_upstream_timeout', 'the upstream did not answer in time');
    } else {
      this.upstream.unavailable++;
      this.fail('gateway_upstream_unavailable', 'the upstream cannot be reached or broke off its reply');
    }
  }

  /** Head and body in one write, together with the other replies of this turn. */
  writeWhole(): void {
    const head = this.#head;
    if (this.done || head === null) return;
    this.done = true;
    const { res, status } = this;
    const part = this.#part;
    const bodiless = this.req.method === 'HEAD' || status === 204 || status === 304;
    if (!this.#hasContentLength && !bodiless) head.push('Content-Length', String(part?.length ?? 0));
    res.writeHead(status, this.#statusText, head);
    if (part === null || bodiless) res.end();
    else if (part.length <= ONE_WRITE_BYTES) res.end(part.toString('latin1'), 'latin1');
    else res.end(part);
    drain(this.req);
  }

  /** The reply did not end within the read that brought its head: from here on it streams. */
  startStreaming(): void {
    const head = this.#head;
    if (this.done || this.#streaming || this.#finishing || head === null) return;
    this.#streaming = true;
    const { res } = this;
    res.writeHead(this.status, this.#statusText, head);
    const part = this.#part;
    this.#part = null;
    if (part === null) res.flushHeaders();
    else if (!res.write(part)) {
      const controller = this.#controller;
      controller?.pause();
      res.once('drain', () => controller?.resume());
    }
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _statusCode: number,
    _headers: unknown,
    socket: Duplex,
  ): void {
    // Not asked for: nothing is upgraded behind the client's back.
    socket.destroy();
    this.fail('gateway_upstream_unavailable', 'the upstream switched protocols unasked');
  }

  clientClosed(): void {
    this.#waited();
    if (this.done) return;
    this.done = true;
    this.#controller?.abort(ABORTED);
  }
}

function writeHeadIfStreaming(exchange: Forward): void {
  exchange.startStreaming();
}

/** The upstream closed a kept-alive connection just when we used it. */
function isStaleConnection(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

function isTimeout(error: Error): boolean {
  return (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError ||
    (error as NodeJS.ErrnoException).code === 'ETIMEDOUT'
  );
}
