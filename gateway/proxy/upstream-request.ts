import type { UpstreamRequest } from './exchange.ts';
import type { ProxyCallOptions } from './proxy-call-options.ts';
import { type BodyOwner, scheduledBody } from './request-body.ts';

export function upstreamRequest(options: ProxyCallOptions, owner: BodyOwner): UpstreamRequest {
  const { req, target, head, headers, upgrade } = options;
  return {
    method: req.method ?? 'GET',
    target,
    headers,
    body: head.hasBody ? bodyOf(options, owner) : null,
    upgrade: upgrade?.protocol ?? null,
  };
}

/** A small body that has arrived is passed as a buffer, which is cheaper than a stream. */
function bodyOf(options: ProxyCallOptions, owner: BodyOwner): NonNullable<UpstreamRequest['body']> {
  const { req, head, upstream, client, outlivesClient } = options;
  const { contentLength } = head;
  if (req.complete && contentLength !== null && contentLength === req.readableLength) {
    // read() without a size would return only the first piece.
    return req.read(contentLength) as Buffer;
  }
  return scheduledBody(req, upstream.scheduler, client, outlivesClient, owner);
}
