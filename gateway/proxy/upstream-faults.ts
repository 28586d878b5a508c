/** Decides what happens to a request when its upstream connection fails: it is sent again, or refused with a reason. */
import { valuesOf } from '#gateway/http/header-fields.ts';
import { CLOSE } from '#gateway/http/hop-by-hop.ts';
import { BadReplyError, UpstreamTimeoutError } from './exchange.ts';
import type { ProxyFailure } from './forwarded-request.ts';

const RETRIED_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Whether a request may be sent a second time, if the upstream may have received it before. */
export function isRetryable(method: string, hasBody: boolean): boolean {
  return !hasBody && RETRIED_METHODS.has(method);
}

/**
 * Whether a reply may belong to no request. An upstream that closes an idle connection may first send 408 (RFC 9110
 * 15.5.9), just when the gateway sends the next request on it.
 *
 * @param fields alternating names and values
 */
export function isUnaskedReply(statusCode: number, fields: readonly string[]): boolean {
  return statusCode === 408 && valuesOf(fields, 'connection').some((value) => CLOSE.test(value));
}

/** Whether the upstream closed an idle connection at the moment it was used. */
export function isStaleConnection(error: Error): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'UPSTREAM_CLOSED' || code === 'ECONNRESET' || code === 'EPIPE';
}

export const LATE_REPLY = failureBy(new UpstreamTimeoutError('no reply to a request'));

/** Returns how a request fails that is not sent again. @param isUnreachable no connection could be made */
export function failureBy(error: Error, isUnreachable = false): ProxyFailure {
  const { code, message } = error as NodeJS.ErrnoException;
  const fault = code === undefined ? null : { code, message, isUnreachable };
  if (fault?.code === 'ETIMEDOUT') return { kind: 'timeout', fault };
  const isBadReply = error instanceof BadReplyError;
  const reason = isBadReply ? message : 'the upstream cannot be reached or broke off its reply';
  return { kind: 'unavailable', reason, fault };
}
