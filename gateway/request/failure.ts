/** Replies to requests that did not reach the upstream, or got no reply from it. */
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { ProxyFailure } from '#gateway/proxy/proxy-call-options.ts';
import type { Framing } from '#gateway/reply/denial.ts';
import { type OwnReply, ownReply } from '#gateway/reply/own-reply.ts';

interface FailureOptions extends Framing {
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

const HELD: Readonly<Record<BoundName, string>> = {
  connections: 'open connections',
  upstream_connections: 'requests in progress',
  waiting: 'waiting requests',
  uploads: 'uploads in progress',
  streams: 'open streams',
  upgrades: 'open WebSockets',
  pipelined: 'pipelined requests',
  unread_replies: 'unread replies',
};

export function failureReply(failure: ProxyFailure, options: FailureOptions): OwnReply {
  switch (failure.kind) {
    case 'broken-body':
      return ownReply('gateway_bad_request', 'the request body broke off', { ...options, close: true });
    case 'timeout':
      return ownReply('gateway_upstream_timeout', 'the upstream did not answer in time', options);
    case 'unavailable':
      return ownReply('gateway_upstream_unavailable', failure.reason, options);
    case 'overloaded':
      return ownReply('gateway_overloaded', 'the application is overloaded; try again later', {
        ...options,
        headers: ['Retry-After', '1', ...options.headers],
        extra: { details: { priority: failure.priority } },
      });
    case 'bound':
      return boundReply(failure.bound, failure.refusal, options);
    default:
      return failure satisfies never;
  }
}

/** Replies 429 if the share of the client or of its network is exhausted, and 503 if the total is. */
export function boundReply(bound: BoundName, refusal: Refusal, options: FailureOptions): OwnReply {
  const more = {
    ...options,
    headers: ['Retry-After', '1', ...options.headers],
    extra: { details: { bound, scope: refusal } },
  };
  return refusal !== 'total'
    ? ownReply(
        'gateway_client_busy',
        `this ${refusal} has too many ${HELD[bound]}; try again when some have ended`,
        more,
      )
    : ownReply('gateway_overloaded', `there are too many ${HELD[bound]}; try again later`, more);
}
