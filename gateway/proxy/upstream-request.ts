import type { RequestBody } from '#gateway/http/request-body.ts';
import type { SentBody, UpstreamRequest } from './exchange.ts';
import type { ForwardedRequest, Passage } from './forwarded-request.ts';
import { type BodyOwner, Upload } from './upload.ts';
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
    contentLength: head.contentLength,
    upgrade: options.upgrade?.protocol ?? null,
  };
}

/** Passes a body that has arrived as a buffer, so that it takes one write. */
function bodyOf(body: RequestBody, call: Call): Buffer | SentBody {
  if (body.complete && call.request.head.contentLength === body.waitingBytes) return body.look();
  return new Upload(body, call.passage.client, call.upstream.scheduler, call);
}
