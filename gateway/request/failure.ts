/** What the client is told when its request did not reach the upstream, or no reply came back. */
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import { DECISION_HEADER } from '#gateway/http/header-names.ts';
import type { ProxyFailure } from '#gateway/proxy/proxy-call-options.ts';
import { type OwnReply, ownReply } from '#gateway/reply/own-reply.ts';

export interface FailureOptions {
  readonly cors: boolean;
  readonly close: boolean;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Of a bound that is reached; null: it has none. */
  readonly decision: string | null;
}

const RETRY_AFTER: readonly string[] = ['Retry-After', '1'];

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
    case 'bound':
      return boundReply(failure.bound, failure.refusal, options);
    default:
      return failure satisfies never;
  }
}

/** 429 when the client's own share is used up, or its network's, 503 when nobody gets more. */
export function boundReply(bound: BoundName, refusal: Refusal, options: FailureOptions): OwnReply {
  const { decision } = options;
  const more = {
    ...options,
    headers: [...RETRY_AFTER, ...options.headers, ...(decision === null ? [] : [DECISION_HEADER, decision])],
    extra: { details: { bound, scope: refusal }, ...(decision === null ? {} : { decision }) },
  };
  return refusal !== 'total'
    ? ownReply(
        'gateway_client_busy',
        `this ${refusal} has too many ${HELD[bound]}; try again when some have ended`,
        more,
      )
    : ownReply('gateway_overloaded', `there are too many ${HELD[bound]}; try again later`, more);
}
