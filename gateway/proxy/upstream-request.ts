/** A request as undici sends it. */
import type { Dispatcher } from 'undici';
import type { ProxyCallOptions } from './proxy-call-options.ts';
import { type BodyOwner, inTurns } from './request-body.ts';

type Body = NonNullable<Dispatcher.DispatchOptions['body']>;

export function upstreamRequest(options: ProxyCallOptions, owner: BodyOwner): Dispatcher.DispatchOptions {
  const { req, target, head, headers, upstream, upgrade } = options;
  const request: Dispatcher.DispatchOptions & { servername: string } = {
    path: target,
    method: (req.method ?? 'GET') as Dispatcher.HttpMethod,
    headers,
    body: head.hasBody ? bodyOf(options, owner) : null,
    // Otherwise undici closes the connection after every HEAD.
    reset: false,
    servername: upstream.servername,
  };
  if (upgrade !== null) request.upgrade = upgrade.protocol;
  return request;
}

/** A small body that has arrived needs no stream: one write instead of an iterator's machinery. */
function bodyOf(options: ProxyCallOptions, owner: BodyOwner): Body {
  const { req, head, upstream, client, outlivesClient } = options;
  const { contentLength } = head;
  if (req.complete && contentLength !== null && contentLength === req.readableLength) {
    // Without a size it gives the first piece only.
    return req.read(contentLength) as Buffer;
  }
  // Not the request itself: undici destroys a body that it stops reading, and with it the client's socket.
  return inTurns(req, upstream.bulk, client, outlivesClient, owner) as unknown as Body;
}
