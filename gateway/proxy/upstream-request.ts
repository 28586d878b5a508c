/** A request as undici sends it. */
import type { Dispatcher } from 'undici';
import type { ProxyCallOptions } from './proxy-call-options.ts';
import { inTurns } from './request-body.ts';

type Body = NonNullable<Dispatcher.DispatchOptions['body']>;

export function upstreamRequest(options: ProxyCallOptions): Dispatcher.DispatchOptions {
  const { req, target, head, headers, upstream, upgrade } = options;
  const request: Dispatcher.DispatchOptions & { servername: string } = {
    path: target,
    method: (req.method ?? 'GET') as Dispatcher.HttpMethod,
    headers,
    body: head.hasBody ? bodyOf(options) : null,
    // Otherwise undici closes the connection after every HEAD.
    reset: false,
    servername: upstream.servername,
  };
  if (upgrade !== null) request.upgrade = upgrade.protocol;
  return request;
}

/** A small body that has arrived needs no stream: one write instead of an iterator's machinery. */
function bodyOf({ req, head: { contentLength }, upstream, client }: ProxyCallOptions): Body {
  if (req.complete && contentLength !== null && contentLength === req.readableLength) {
    // Without a size it gives the first piece only.
    return req.read(contentLength) as Buffer;
  }
  // Not the request itself: undici destroys a body that it stops reading, and with it the client's socket.
  return inTurns(req, upstream.bulk, client) as unknown as Body;
}
