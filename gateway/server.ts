/** The public listener: raw node:http in front of the enforcement, and the way it goes down without cutting anybody. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Millis } from './clock.ts';
import { type Enforcement, Exchange, UpgradeExchange } from './enforce.ts';
import type { ErrorCode } from './errors.ts';
import { ExchangeResponse, type Upstream } from './proxy/forward.ts';
import { mayUpgrade, responseFor } from './proxy/upgrade.ts';
import { ownReply, rawReply } from './reply.ts';

const HEADERS_TIMEOUT_MS: Millis = 10_000;
/** From the first byte to the last one of a request, its body included. */
const REQUEST_TIMEOUT_MS: Millis = 300_000;
const CHECK_INTERVAL_MS: Millis = 1000;
/** Longer than the idle time of the usual load balancer, so that it is the one to close. */
const KEEP_ALIVE_MS: Millis = 65_000;
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
  readonly #tunnels = new Set<Duplex>();
  readonly #sockets = new Set<Socket>();

  constructor(enforcement: Enforcement, upstream: Upstream) {
    this.#upstream = upstream;
    const handle = (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): void => {
      if (req.method === 'OPTIONS' && req.url === '*') {
        // Asks about the server, not about a resource: ours to answer (RFC 9110 9.3.7).
        res.writeHead(204).end();
        return;
      }
      const exchange = new Exchange(req, res as ExchangeResponse, upstream, enforcement);
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
        shouldUpgradeCallback: mayUpgrade,
      },
      (req, res) => handle(req, res, false),
    );
    this.#server.on('checkContinue', (req, res) => handle(req, res, true));
    this.#server.on('upgrade', (req, socket, head) => {
      const res = responseFor(req, socket);
      const tunnel = { socket, head, tunnels: this.#tunnels };
      enforcement.handle(new UpgradeExchange(req, res, upstream, enforcement, tunnel));
    });
    this.#server.on('clientError', answerUnparsed);
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** @returns the port, for those who asked for any */
  listen({ host, port, reusePort }: PublicServerOptions): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, reusePort, backlog: 1024 }, () => {
        this.#server.off('error', reject);
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
      for (const tunnel of this.#tunnels) tunnel.destroy();
    }, deadlineMs);
    await closed;
    clearTimeout(idle);
    clearInterval(sweep);
    clearTimeout(deadline);
  }
}

const PARSE_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['gateway_header_too_large', 'the header section is larger than 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['gateway_request_timeout', 'the request did not arrive in time'],
};

/** What the parser refuses gets 400 and a closed connection. The route is unknown, so CORS is granted to all. */
function answerUnparsed(error: NodeJS.ErrnoException, socket: Duplex): void {
  // node:http keeps the response in progress there; it must not be written into.
  const { _httpMessage: current } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  if (error.code === 'ECONNRESET' || !socket.writable || current?.headersSent === true) {
    socket.destroy();
    return;
  }
  const [code, message] = PARSE_ERRORS[error.code ?? ''] ?? [
    'gateway_bad_request',
    'the request is not valid HTTP/1.1',
  ];
  socket.end(rawReply(ownReply(code, message, { cors: true, close: true })));
}
