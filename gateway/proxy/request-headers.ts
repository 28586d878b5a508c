/** What the upstream gets to see of a request's header section. */
import { dropNominated, HOP_BY_HOP, NameSet, nominated } from './hop-by-hop.ts';

export type UpstreamRequest =
  | {
      readonly ok: true;
      /** Names and values in turn. */
      readonly headers: string[];
      readonly hasBody: boolean;
      /** The body's length as announced; null when chunked or absent. */
      readonly contentLength: number | null;
    }
  | { readonly ok: false; readonly reason: string };

export interface RequestOrigin {
  /** The socket's peer, as text. */
  readonly peer: string;
  /** The peer is a proxy whose X-Forwarded-Proto and -Host, Forwarded and X-Real-IP we believe. */
  readonly trusted: boolean;
}

const SPECIAL = new NameSet([
  ...HOP_BY_HOP,
  // Ours to answer, and not to repeat.
  'expect',
  'http2-settings',
  // Looked at on the way.
  'host',
  'content-length',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  // Claims about the client in other words. Strangers make none.
  'forwarded',
  'x-real-ip',
]);
/** Only the gateway speaks in these. */
const RESERVED = /^x-gateway-/i;
const FIRST_X = /^[xX]/;
/** uri-host [ ":" port ] (RFC 9110 7.2), loosely: nothing that could end the authority of an address built from it. */
const HOST = /^[A-Za-z0-9\-._~!$&'()*+,;=%:[\]]*$/;

/**
 * @param rawHeaders names and values in turn, as node:http gives them
 * @param httpVersion of the request, as node:http gives it
 */
export function upstreamHeaders(
  rawHeaders: readonly string[],
  httpVersion: string,
  origin: RequestOrigin,
): UpstreamRequest {
  const headers: string[] = [];
  let host: string | undefined;
  let forwardedFor = '';
  let forwardedProto: string | undefined;
  let forwardedHost: string | undefined;
  let contentLength: number | null = null;
  let chunked = false;
  let dropped: ReadonlySet<string> | null = null;

  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    const value = rawHeaders[i + 1] ?? '';
    switch (SPECIAL.find(name)) {
      case null:
        if (!(FIRST_X.test(name) && RESERVED.test(name))) headers.push(name, value);
        break;
      case 'host':
        if (host !== undefined) return { ok: false, reason: 'the request has more than one Host header' };
        if (!HOST.test(value)) return { ok: false, reason: 'the Host header is not a host name' };
        host = value;
        headers.push(name, value);
        break;
      case 'content-length':
        contentLength = Number(value);
        headers.push(name, value);
        break;
      case 'transfer-encoding':
        if (chunked || value.trim().toLowerCase() !== 'chunked') {
          return { ok: false, reason: 'the only transfer coding understood here is chunked' };
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
        forwardedProto = value;
        break;
      case 'x-forwarded-host':
        forwardedHost = value;
        break;
      case 'forwarded':
      case 'x-real-ip':
        if (origin.trusted) headers.push(name, value);
        break;
    }
  }
  if (host === undefined && httpVersion !== '1.0') {
    return { ok: false, reason: 'the request has no Host header' };
  }
  if (chunked && contentLength !== null) {
    return { ok: false, reason: 'the request has both Content-Length and Transfer-Encoding' };
  }
  if (dropped !== null) dropNominated(headers, dropped);

  headers.push('X-Forwarded-For', forwardedFor === '' ? origin.peer : `${forwardedFor}, ${origin.peer}`);
  headers.push('X-Forwarded-Proto', origin.trusted && forwardedProto !== undefined ? forwardedProto : 'http');
  const seenHost = origin.trusted && forwardedHost !== undefined ? forwardedHost : host;
  if (seenHost !== undefined) headers.push('X-Forwarded-Host', seenHost);
  return {
    ok: true,
    headers,
    hasBody: chunked || (contentLength !== null && contentLength > 0),
    contentLength,
  };
}

/** All values of X-Forwarded-For, joined in their order; '' when there is none. */
export function forwardedForOf(rawHeaders: readonly string[]): string {
  let joined = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== 15 || name.toLowerCase() !== 'x-forwarded-for') continue;
    joined += joined === '' ? (rawHeaders[i + 1] ?? '') : `, ${rawHeaders[i + 1] ?? ''}`;
  }
  return joined;
}
