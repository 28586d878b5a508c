/** A server of node:http that reads connections given to it. */
import type { Server, ServerOptions } from 'node:http';
import { IncomingRequest } from '#gateway/http/incoming-request.ts';
import { createServer } from '#gateway/http/node-http.ts';
import { OutgoingResponse } from '#gateway/http/outgoing-response.ts';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '#gateway/listen/connection/keep-alive.ts';
import { HEADER_FIELDS_MAX } from '#gateway/listen/connection/socket-replies.ts';
import type { Millis } from '#shared/clock.ts';

export type HttpServer = Server<typeof IncomingRequest, typeof OutgoingResponse>;

const CHECK_INTERVAL_MS: Millis = 1000;

type HttpOptions = Pick<
  ServerOptions<typeof IncomingRequest, typeof OutgoingResponse>,
  'maxHeaderSize' | 'shouldUpgradeCallback' | 'keepAliveTimeout'
>;

/** The server reads the socket of each event `connection` that it is given. */
export function newHttpServer(options: HttpOptions): HttpServer {
  const http = createServer({
    ...options,
    IncomingMessage: IncomingRequest,
    ServerResponse: OutgoingResponse,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    optimizeEmptyRequests: true,
    // The gateway refuses requests without Host itself, because node:http's refusal has no body.
    requireHostHeader: false,
  });
  // node:http silently drops header fields above this number. It must exceed the gateway's own limit.
  http.maxHeadersCount = 2 * HEADER_FIELDS_MAX;
  // It starts to check its timeouts on this event.
  http.emit('listening');
  return http;
}
