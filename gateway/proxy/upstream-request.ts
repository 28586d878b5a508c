import type { RequestBody } from '#gateway/http/client-exchange.ts';
import type { UpstreamRequest } from './exchange.ts';
import type { ProxyCallOptions } from './proxy-call-options.ts';
import { type BodyOwner, scheduledBody } from './request-body.ts';

export function upstreamRequest(options: ProxyCallOptions, owner: BodyOwner): UpstreamRequest {
  const { req, target, head, headers, upgrade } = options;
  return {
    method: req.method ?? 'GET',
    target,
    headers,
    body: head.hasBody && req.body !== null ? bodyOf(req.body, options, owner) : null,
    upgrade: upgrade?.protocol ?? null,
  };
}

/** Passes a small body that has arrived as a buffer, which is cheaper than a stream. */
function bodyOf(
  body: RequestBody,
  { head, upstream, client, outlivesClient }: ProxyCallOptions,
  owner: BodyOwner,
): Buffer | AsyncIterable<Buffer> {
  const { contentLength } = head;
  if (body.complete && contentLength !== null && contentLength === body.readableLength) {
    // read() without a size would return only the first piece.
    return body.read(contentLength) as Buffer;
  }
  return scheduledBody(body, upstream.scheduler, client, outlivesClient, owner);
}
