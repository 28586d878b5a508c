/** Replies to requests that did not reach the upstream, or got no reply from it. */
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { ProxyFailure } from '#gateway/proxy/forwarded-request.ts';
import { BOUND_REASONS, REASONS } from '#gateway/refusals/reasons.ts';
import type { Framing } from '#gateway/reply/denial.ts';
import { type OwnReply, ownReply } from '#gateway/reply/own-reply.ts';

interface FailureOptions extends Framing {
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

export function failureReply(failure: ProxyFailure, options: FailureOptions): OwnReply {
  switch (failure.kind) {
    case 'timeout': {
      const { code, text } = REASONS.upstreamTimeout;
      return ownReply(code, text, options);
    }
    case 'unavailable':
      return ownReply(REASONS.upstreamUnavailable.code, failure.reason, options);
    case 'overloaded': {
      const { code, text } = REASONS.protect;
      return ownReply(code, text, { ...options, extra: { details: { priority: failure.priority } } });
    }
    case 'bound':
      return boundReply(failure.bound, failure.refusal, options);
    default:
      return failure satisfies never;
  }
}

/** Replies 429 if the share of the client or of its network is exhausted, and 503 if the total is. */
export function boundReply(bound: BoundName, refusal: Refusal, options: FailureOptions): OwnReply {
  const { code, text } = BOUND_REASONS[refusal];
  return ownReply(code, text(bound), { ...options, extra: { details: { bound, scope: refusal } } });
}
