/**
 * Checks the header section of a request before anything is charged, and reads in the same pass what later steps need.
 */
import { PROBE_HEADER } from './header-names.ts';
import { nominated } from './hop-by-hop.ts';
import { isAuthority } from './host.ts';

export type RequestHead = CheckedHead | { readonly ok: false; readonly reason: string };

export interface CheckedHead {
  readonly ok: true;
  /** Value of Host; undefined if a request of HTTP/1.0 omits it. */
  readonly host: string | undefined;
  readonly hasBody: boolean;
  /** The announced length of the body; null if it is chunked or absent. */
  readonly contentLength: number | null;
  /** All values of X-Forwarded-For, joined; '' if there is none. */
  readonly forwardedFor: string;
  /** The last values of X-Forwarded-Proto and X-Forwarded-Host. The peer may be untrusted. */
  readonly forwardedProto: string | undefined;
  readonly forwardedHost: string | undefined;
  /** Lower-case names that Connection makes hop-by-hop; null if there are none. */
  readonly nominated: ReadonlySet<string> | null;
  /** The token of a probe by `floodgate doctor`; null if there is none. */
  readonly probe: string | null;
}

/** The initial value before a request is checked. */
export const EMPTY_HEAD: CheckedHead = {
  ok: true,
  host: undefined,
  hasBody: false,
  contentLength: null,
  forwardedFor: '',
  forwardedProto: undefined,
  forwardedHost: undefined,
  nominated: null,
  probe: null,
};

/** X-Forwarded-Host and X-Forwarded-Proto have either one value, or a list to which each proxy added one. */
const FORWARDED_HOST = /^[A-Za-z0-9\-._~!$&'()*+,;=%:[\] ]*$/;
const FORWARDED_PROTO = /^(?:https?|wss?)(?:[ \t]*,[ \t]*(?:https?|wss?))*$/i;

/**
 * @param rawHeaders alternating names and values, as node:http gives them
 * @param trusted the peer is a trusted proxy, so its X-Forwarded-* headers are forwarded
 * @param identityHeaders lower-case names of the headers in which clients present credentials
 */
export function checkRequestHead(
  rawHeaders: readonly string[],
  httpVersion: string,
  trusted: boolean,
  identityHeaders: ReadonlySet<string>,
): RequestHead {
  let host: string | undefined;
  let contentLength: number | null = null;
  let chunked = false;
  let forwardedFor = '';
  let forwardedProto: string | undefined;
  let forwardedHost: string | undefined;
  let dropped: ReadonlySet<string> | null = null;
  let probe: string | null = null;

  for (let i = 0; i < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1] ?? '';
    switch (rawHeaders[i]?.toLowerCase()) {
      case 'host':
        if (host !== undefined) return bad('the request has more than one Host header');
        if (!isAuthority(value)) return bad('the Host header is not a host name');
        host = value;
        break;
      case 'content-length':
        contentLength = Number(value);
        if (!Number.isSafeInteger(contentLength)) return bad('the Content-Length is not a length');
        break;
      case 'transfer-encoding':
        if (chunked || value.trim().toLowerCase() !== 'chunked') {
          return bad('the only transfer coding understood here is chunked');
        }
        chunked = true;
        break;
      case 'connection':
        dropped = nominated(value, dropped);
        break;
      case 'x-forwarded-for':
        forwardedFor += forwardedFor === '' ? value : `, ${value}`;
        break;
      case 'x-forwarded-proto':
        if (trusted && !FORWARDED_PROTO.test(value))
          return bad('X-Forwarded-Proto is neither http nor https');
        forwardedProto = value;
        break;
      case 'x-forwarded-host':
        if (trusted && !FORWARDED_HOST.test(value)) return bad('X-Forwarded-Host is not a host name');
        forwardedHost = value;
        break;
      case PROBE_HEADER:
        probe = value;
        break;
    }
  }
  if (host === undefined && httpVersion !== '1.0') return bad('the request has no Host header');
  if (chunked && contentLength !== null) {
    return bad('the request has both Content-Length and Transfer-Encoding');
  }
  // Connection makes proxies remove this header. The gateway would count the credential but not forward it.
  if (dropped !== null && !dropped.isDisjointFrom(identityHeaders)) {
    return bad('the Connection header names a header that carries a credential');
  }
  return {
    ok: true,
    host,
    hasBody: hasBody(contentLength, chunked),
    contentLength,
    forwardedFor,
    forwardedProto,
    forwardedHost,
    nominated: dropped,
    probe,
  };
}

/**
 * Whether a request has a body (RFC 9112 6.3). `Content-Length: 0` says that it has none, also in a GET.
 *
 * @param contentLength null if it is not announced
 */
export function hasBody(contentLength: number | null, isChunked: boolean): boolean {
  return isChunked || (contentLength !== null && contentLength > 0);
}

function bad(reason: string): RequestHead {
  return { ok: false, reason };
}
