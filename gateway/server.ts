/** The public listener: raw node:http in front of the enforcement, and the way it goes down without cutting anybody. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Millis } from '#shared/clock.ts';
import { type Enforcement, Exchange, UpgradeExchange } from './enforce.ts';
import type { ErrorCode } from './errors.ts';
import { SilenceWatch } from './proxy/arrival.ts';
import { closeGently } from './proxy/drain.ts';
import { ExchangeResponse } from './proxy/forward.ts';
import { mayUpgrade, pendingResponse, responseFor } from './proxy/upgrade.ts';
import type { Upstream } from './proxy/upstream.ts';
import { KEEP_ALIVE_MS } from './proxy/whole-reply.ts';
import { type OwnReply, ownReply, rawReply, sendOwn } from './reply.ts';

const HEADERS_TIMEOUT_MS: Millis = 10_000;
/** From the first byte to the last one of a request, its body included: 100 MB at 28 KB/s. Silence is cut far earlier. */
const REQUEST_TIMEOUT_MS: Millis = 3_600_000;
const CHECK_INTERVAL_MS: Millis = 1000;
/** While draining: how long an idle connection may still begin a request. */
const IDLE_GRACE_MS: Millis = 500;
const DRAIN_CHECK_MS: Millis = 50;

export interface PublicServerOptions {
  readonly host: string;
  readonly port: number;
  /** Several processes listen on the same port, and the kernel spreads connections over them. */
  readonly reusePort: boolean;
}

export class PublicServer {
  readonly #server: Server;
  readonly #upstream: Upstream;
  readonly #sockets = new Set<Socket>();
  readonly #silence: SilenceWatch;
  /** How many requests wait for the reply before them, by connection. */
  readonly #pipelined = new WeakMap<Socket, number>();

  /** @param checkMs between two looks at bodies on their way */
  constructor(enforcement: Enforcement, upstream: Upstream, checkMs?: Millis) {
    this.#upstream = upstream;
    this.#silence = new SilenceWatch(
      this.#sockets,
      pendingResponse,
      (socket) => refuse(socket, SILENT),
      checkMs,
    );
    const handle = (req: IncomingMessage, res: ExchangeResponse, expectsContinue: boolean): void => {
      // node:http gives a response its socket when it is its turn to be written.
      if (res.socket === null) {
        this.#holdBack(req, res, () => handle(req, res, expectsContinue));
        return;
      }
      const unusual = replyToUnusual(req);
      if (unusual !== null) {
        sendOwn(req, res, unusual);
        return;
      }
      if (req.method === 'OPTIONS' && req.url === '*') {
        // Asks about the server, not about a resource: ours to answer (RFC 9110 9.3.7).
        res.writeHead(204, upstream.draining ? ['Connection', 'close'] : []).end();
        return;
      }
      const exchange = new Exchange(req, res, upstream, enforcement);
      exchange.expectsContinue = expectsContinue;
      enforcement.handle(exchange);
    };
    this.#server = createServer(
      {
        ServerResponse: ExchangeResponse,
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: CHECK_INTERVAL_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
        optimizeEmptyRequests: true,
        // A tunnel whose client has vanished says so by this alone.
        keepAlive: true,
        keepAliveInitialDelay: KEEP_ALIVE_MS,
        // node:http would answer without a body; ours has one.
        requireHostHeader: false,
        shouldUpgradeCallback: mayUpgrade,
      },
      (req, res) => handle(req, res, false),
    );
    // The header section's size is the bound; a count would hide the fields beyond it.
    this.#server.maxHeadersCount = 0;
    this.#server.on('checkContinue', (req, res) => handle(req, res as ExchangeResponse, true));
    this.#server.on('checkExpectation', (req, res) => handle(req, res as ExchangeResponse, false));
    this.#server.on('upgrade', (req, socket, head) => {
      const res = responseFor(req, socket);
      enforcement.handle(new UpgradeExchange(req, res, upstream, enforcement, { socket, head }));
    });
    this.#server.on('connect', (_req, socket) => {
      socket.on('error', () => socket.destroy());
      refuse(socket, METHOD_NOT_ALLOWED);
    });
    this.#server.on('clientError', answerUnparsed);
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /**
   * Pipelined requests are taken one by one, so a connection holds no more than one of the upstream's. Meanwhile nothing
   * more is read than what has arrived already.
   */
  #holdBack(req: IncomingMessage, res: ExchangeResponse, handle: () => void): void {
    const { socket } = req;
    this.#pipelined.set(socket, (this.#pipelined.get(socket) ?? 0) + 1);
    socket.pause();
    res.once('socket', () => {
      const left = (this.#pipelined.get(socket) ?? 1) - 1;
      this.#pipelined.set(socket, left);
      if (left === 0) socket.resume();
      handle();
    });
  }

  /** @returns the port, for those who asked for any */
  listen({ host, port, reusePort }: PublicServerOptions): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, reusePort, backlog: 1024 }, () => {
        this.#server.off('error', reject);
        // Accepting can fail for want of file descriptors. That costs a connection, not the process.
        this.#server.on('error', () => undefined);
        const address = this.#server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Stops accepting, answers every request that arrives on an open connection with `Connection: close`, and resolves
   * once all are answered. What is left after the deadline is cut.
   */
  async drain(deadlineMs: Millis): Promise<void> {
    this.#upstream.draining = true;
    // One more turn of the loop accepts what the kernel has queued already.
    await new Promise((resolve) => setImmediate(resolve));
    // Not http's own close(): it also closes idle connections, at the very moment at which a client may be sending
    // its next request on one.
    const closed = new Promise((resolve) => NetServer.prototype.close.call(this.#server, resolve));
    const idle = setTimeout(() => this.#server.closeIdleConnections(), IDLE_GRACE_MS);
    const sweep = setInterval(() => this.#server.closeIdleConnections(), IDLE_GRACE_MS + DRAIN_CHECK_MS);
    const deadline = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, deadlineMs);
    await closed;
    this.#silence.stop();
    clearTimeout(idle);
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}

const SILENT = ownReply('gateway_request_timeout', 'the request body did not arrive in time', {
  cors: true,
  close: true,
});
const METHOD_NOT_ALLOWED = ownReply('gateway_method_not_allowed', 'CONNECT and TRACE are not served here', {
  headers: ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
  cors: true,
  close: true,
});
const BAD_VERSION = ownReply('gateway_bad_request', 'the request is neither HTTP/1.1 nor HTTP/1.0', {
  cors: true,
  close: true,
});

/** The answer to what the parser lets pass and we do not; null for the usual request. */
function replyToUnusual({ method, httpVersion }: IncomingMessage): OwnReply | null {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return BAD_VERSION;
  return method === 'TRACE' ? METHOD_NOT_ALLOWED : null;
}

const PARSE_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['gateway_header_too_large', 'the header section is larger than 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['gateway_request_timeout', 'the request did not arrive in time'],
};

/** What the parser refuses gets 400 and a closed connection. The route is unknown, so CORS is granted to all. */
function answerUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
  // Answered already: this is more of the same, and closeGently() sees to the end.
  if (socket.writableEnded && !socket.destroyed) return;
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, message] = PARSE_ERRORS[error.code ?? ''] ?? [
    'gateway_bad_request',
    'the request is not valid HTTP/1.1',
  ];
  refuse(socket, ownReply(code, message, { cors: true, close: true }));
}

/** Answers on the bare socket, unless another reply is due there: two must not be mistaken for one another. */
function refuse(socket: Duplex, reply: OwnReply): void {
  const pending = pendingResponse(socket);
  if (pending?.headersSent === true) {
    // A reply of our own has been written whole; one from the upstream would be cut here.
    if (pending.exchange?.done === false) socket.destroy();
    else closeGently(socket);
    return;
  }
  if (pending?.req.complete === true) {
    // What cannot be read came after a whole request. That one is answered, and the connection closes with it.
    pending.shouldKeepAlive = false;
    return;
  }
  pending?.exchange?.clientClosed();
  closeGently(socket, rawReply(reply));
}
