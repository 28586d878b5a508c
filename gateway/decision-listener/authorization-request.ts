/**
 * Parses authorization requests, in which a proxy asks whether a request may pass. Each kind of proxy describes the
 * request in its own way. An incomplete description is refused, because the gateway never guesses missing parts.
 */

/** The way in which a kind of proxy asks, and expects the answer. */
export type Dialect =
  /** Traefik, Caddy: a refusal is forwarded to the client as it is. */
  | 'forward-auth'
  /** NGINX: a refusal must have status 403 and can only carry header fields. */
  | 'auth-request'
  /** Envoy: like forward-auth, but the original path follows the endpoint's path. */
  | 'ext-authz';

interface AuthorizationRequest {
  readonly ok: true;
  readonly dialect: Dialect;
  readonly method: string;
  readonly target: string;
}

/**
 * A report of a proxy about the status of a reply. It tells the gateway whether the application accepts a credential.
 */
interface ReplyReport {
  readonly ok: true;
  readonly dialect: 'replied';
  readonly method: string;
  readonly target: string;
  readonly status: number;
}

export interface BadAuthorizationRequest {
  readonly ok: false;
  readonly reason: string;
  /** The sender that made the mistake. The log names mistakes of proxies. */
  readonly by: 'proxy' | 'client';
}

/** How the requests of the proxies are answered. */
export interface CheckedOptions {
  readonly isCredentialProven: boolean;
  /**
   * Called if a proxy sent an authorization request that the gateway cannot answer.
   *
   * @param reason the mistake in the proxy's configuration
   */
  readonly onBadRequest: (reason: string) => void;
}

export const UNTRUSTED = 'the address of this proxy is not in GATEWAY_TRUSTED_PROXIES; add it';

const METHOD = 'X-Forwarded-Method';
const URI = 'X-Forwarded-Uri';
const FOR = 'X-Forwarded-For';
const HOST = 'X-Forwarded-Host';
const STATUS = 'X-Reply-Status';
const EXT_AUTHZ = '/ext-authz';
const REPLIED = '/replied';

/** The header fields that describe the request, and what they are for. */
const DESCRIBED = [
  [METHOD, 'it must contain the method of the request'],
  [URI, 'it must contain the path and query of the request'],
] as const;
const DESCRIBED_HOST = [
  HOST,
  'some policies have hosts, so it must contain the host of the request',
] as const;

/** Pattern of a method (RFC 9110 9.1). */
const METHOD_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Limits the length because clients choose the method and it appears in logs. Registered methods are shorter. */
const METHOD_LENGTH_MAX = 32;

/** Methods are case-sensitive (RFC 9110 9.1), but many applications accept `post` as POST, and policies do not. */
const UPPER_CASE = /^[A-Z-]+$/;

/**
 * Checks the method of the described request. A mistake in it is the client's, not the proxy's.
 *
 * @returns null if policies can be matched against it
 */
export function methodProblem(method: string): string | null {
  return UPPER_CASE.test(method)
    ? null
    : `the method "${method}" is not in upper case; send one such as GET or POST`;
}

/** @param usesHosts whether policies depend on the host of the described request */
export function authorizationRequestOf(
  method: string,
  target: string,
  rawHeaders: readonly string[],
  usesHosts: boolean,
): AuthorizationRequest | ReplyReport | BadAuthorizationRequest {
  if (valuesOf(FOR, rawHeaders).every((value) => value.trim() === ''))
    return missing(FOR, "without it every client would count as the proxy's own address");
  if (target.startsWith(`${EXT_AUTHZ}/`)) {
    if (usesHosts && valuesOf(HOST, rawHeaders).length > 0)
      return bad(`Envoy sent the ${HOST} of the client; remove it from allowed_headers, the host is in Host`);
    return { ok: true, dialect: 'ext-authz', method, target: target.slice(EXT_AUTHZ.length) };
  }
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  if (path !== '/forward-auth' && path !== '/auth-request' && path !== REPLIED)
    return bad('use /forward-auth, /auth-request (NGINX) or a path below /ext-authz/ (Envoy)');
  for (const [name, why] of usesHosts ? [...DESCRIBED, DESCRIBED_HOST] : DESCRIBED) {
    const [value = '', ...others] = valuesOf(name, rawHeaders);
    if (value === '') return missing(name, why);
    if (others.length > 0) return bad(`the proxy sent ${name} more than once; it must replace the client's`);
  }
  const [described = ''] = valuesOf(METHOD, rawHeaders);
  const [uri = ''] = valuesOf(URI, rawHeaders);
  if (!METHOD_TOKEN.test(described)) return bad(`${METHOD} is not a method`);
  if (described.length > METHOD_LENGTH_MAX)
    return bad(
      `the method is longer than ${METHOD_LENGTH_MAX} characters; send one such as GET or POST`,
      'client',
    );
  const request = { ok: true, method: described, target: uri } as const;
  if (path !== REPLIED)
    return { ...request, dialect: path === '/forward-auth' ? 'forward-auth' : 'auth-request' };
  const [status = '', ...others] = valuesOf(STATUS, rawHeaders);
  if (!/^[1-5]\d\d$/.test(status) || others.length > 0)
    return bad(`the proxy sent no ${STATUS}, or more than one: it must be the status of the reply`);
  return { ...request, dialect: 'replied', status: Number(status) };
}

function valuesOf(name: string, rawHeaders: readonly string[]): string[] {
  const values: string[] = [];
  const lowerCase = name.toLowerCase();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const other = rawHeaders[i] ?? '';
    if (other.length === name.length && other.toLowerCase() === lowerCase)
      values.push(rawHeaders[i + 1] ?? '');
  }
  return values;
}

function missing(name: string, why: string): BadAuthorizationRequest {
  return bad(`the proxy sent no ${name}: ${why}`);
}

export function bad(reason: string, by: BadAuthorizationRequest['by'] = 'proxy'): BadAuthorizationRequest {
  return { ok: false, reason, by };
}
