/**
 * The servers of node:http: one for trusted proxies and one for clients, because a server has one keep-alive time for
 * all its connections.
 */
import type { Server, ServerOptions } from 'node:http';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { createServer } from '#gateway/http/node-http.ts';
import { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import {
  HEADERS_TIMEOUT_MS,
  type KeepAlive,
  REQUEST_TIMEOUT_MS,
} from '#gateway/listen/connection/keep-alive.ts';
import type { Millis } from '#shared/clock.ts';
import { HEADER_FIELDS_MAX } from './unusual-request.ts';

export type HttpServer = Server<typeof IncomingRequest, typeof OutgoingResponse>;

const CHECK_INTERVAL_MS: Millis = 1000;

interface HttpOptions
  extends Pick<
    ServerOptions<typeof IncomingRequest, typeof OutgoingResponse>,
    'maxHeaderSize' | 'shouldUpgradeCallback'
  > {
  /** Adds the listeners for events of a server. */
  readonly listen: (http: HttpServer) => void;
}

export class HttpServers {
  readonly #ofProxies: HttpServer;
  readonly #ofClients: HttpServer;

  constructor({ proxies, clients }: KeepAlive, options: HttpOptions) {
    this.#ofProxies = newServer(proxies.idleMs, options);
    this.#ofClients = newServer(clients.idleMs, options);
  }

  /** Lets node:http read the connection. */
  open({ socket, origin }: ClientConnection): void {
    (origin.trusted ? this.#ofProxies : this.#ofClients).emit('connection', socket);
  }

  /** node:http starts to check its timeouts on this event. */
  onListening(): void {
    for (const server of this.#all()) server.emit('listening');
  }

  closeIdle(): void {
    for (const server of this.#all()) server.closeIdleConnections();
  }

  close(): void {
    for (const server of this.#all()) server.close();
  }

  #all(): readonly HttpServer[] {
    return [this.#ofProxies, this.#ofClients];
  }
}

function newServer(keepAliveTimeout: Millis, { listen, ...options }: HttpOptions): HttpServer {
  const http = createServer({
    ...options,
    IncomingMessage: IncomingRequest,
    ServerResponse: OutgoingResponse,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    keepAliveTimeout,
    optimizeEmptyRequests: true,
    // The gateway refuses requests without Host itself, because node:http's refusal has no body.
    requireHostHeader: false,
  });
  // node:http silently drops header fields above this number. It must exceed the gateway's own limit.
  http.maxHeadersCount = 2 * HEADER_FIELDS_MAX;
  listen(http);
  return http;
}
