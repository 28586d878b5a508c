import type { RequestBody } from '#gateway/http/client-exchange.ts';
import type { UpstreamRequest } from './exchange.ts';
import type { ForwardedRequest, Passage } from './forwarded-request.ts';
import { type BodyOwner, scheduledBody } from './request-body.ts';
import type { Upstream } from './upstream.ts';

interface Call extends BodyOwner {
  readonly request: ForwardedRequest;
  readonly upstream: Upstream;
  readonly passage: Passage;
}

export function upstreamRequest(call: Call): UpstreamRequest {
  const { req, match, head, options } = call.request;
  return {
    method: req.method ?? 'GET',
    target: match.target,
    headers: call.passage.headers,
    body: head.hasBody && req.body !== null ? bodyOf(req.body, call) : null,
    upgrade: options.upgrade?.protocol ?? null,
  };
}

/** Passes a small body that has arrived as a buffer, which is cheaper than a stream. */
function bodyOf(body: RequestBody, call: Call): Buffer | AsyncIterable<Buffer> {
  const { contentLength } = call.request.head;
  if (body.complete && contentLength !== null && contentLength === body.readableLength) {
    // read() without a size would return only the first piece.
    return body.read(contentLength) as Buffer;
  }
  const { client, outlivesClient } = call.passage;
  return scheduledBody(body, call.upstream.scheduler, client, outlivesClient, call);
}
