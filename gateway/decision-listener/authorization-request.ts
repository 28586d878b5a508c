/**
 * Parses authorization requests, in which a proxy asks whether a request may pass. Each kind of proxy describes the
 * request in its own way. An incomplete description is refused, because the gateway never guesses missing parts.
 */
import { valuesOf } from '#gateway/http/header-fields.ts';

/**
 * How a proxy asks, by the path that it asks at.
 *
 * - forward-auth: Traefik and Caddy. A refusal is forwarded to the client as it is.
 * - auth-request: NGINX. A refusal must have status 403 and can only carry header fields.
 * - ext-authz: Envoy. Like forward-auth, but the path of the request follows that of the endpoint.
 * - replied: a report of the status of a reply. It tells whether the application accepts a credential.
 */
const DIALECTS = ['forward-auth', 'auth-request', 'ext-authz', 'replied'] as const;
export type Dialect = (typeof DIALECTS)[number];

interface AuthorizationRequest {
  readonly dialect: Dialect;
  readonly method: string;
  readonly target: string;
  /** The status that is reported; 0 if none is. */
  readonly status: number;
}

const METHOD = 'X-Forwarded-Method';
const URI = 'X-Forwarded-Uri';
const FOR = 'X-Forwarded-For';
const HOST = 'X-Forwarded-Host';
const STATUS = 'X-Reply-Status';
const EXT_AUTHZ = '/ext-authz';

/** Says why a proxy has to send each header field. */
const NEEDED: Readonly<Record<string, string>> = {
  [FOR]: "without it every client would count as the proxy's own address",
  [METHOD]: 'it must contain the method of the request',
  [URI]: 'it must contain the path and query of the request',
  [HOST]: 'some policies have hosts, so it must contain the host of the request',
  [STATUS]: 'it must be the status of the reply',
};

/**
 * Methods are case-sensitive (RFC 9110 9.1), but many applications accept `post` as POST, and policies do not. The length
 * is limited because clients choose the method and it appears in logs.
 */
const KNOWN_METHOD = /^[A-Z-]{1,32}$/;

/**
 * Checks the method of the described request. A mistake in it is the client's, not the proxy's.
 *
 * @returns null if policies can be matched against it
 */
export function methodProblem(method: string): string | null {
  return KNOWN_METHOD.test(method)
    ? null
    : `the method "${method.slice(0, 32)}" is not in upper case, or too long; send one such as GET or POST`;
}

/**
 * @param usesHosts whether policies depend on the host of the described request
 * @returns a string with the mistake in the proxy's configuration
 */
export function authorizationRequestOf(
  method: string,
  target: string,
  rawHeaders: readonly string[],
  usesHosts: boolean,
): AuthorizationRequest | string {
  const values = (name: string): string[] => valuesOf(rawHeaders, name.toLowerCase());
  const missing = (name: string) => `the proxy sent no ${name}: ${NEEDED[name]}`;
  if (values(FOR).every((value) => value.trim() === '')) return missing(FOR);
  if (target.startsWith(`${EXT_AUTHZ}/`)) {
    if (usesHosts && values(HOST).length > 0)
      return `Envoy sent the ${HOST} of the client; remove it from allowed_headers, the host is in Host`;
    return { dialect: 'ext-authz', method, target: target.slice(EXT_AUTHZ.length), status: 0 };
  }
  const [path = ''] = target.split('?', 1);
  const dialect = DIALECTS.find((one) => path === `/${one}`);
  if (dialect === undefined || dialect === 'ext-authz')
    return 'use /forward-auth, /auth-request (NGINX) or a path below /ext-authz/ (Envoy)';
  const needed = [METHOD, URI, ...(usesHosts ? [HOST] : []), ...(dialect === 'replied' ? [STATUS] : [])];
  for (const name of needed) {
    const [value = '', ...others] = values(name);
    if (value === '') return missing(name);
    if (others.length > 0) return `the proxy sent ${name} more than once; it must replace the client's`;
  }
  const [[described = ''], [uri = ''], [status = '0']] = [values(METHOD), values(URI), values(STATUS)];
  if (dialect === 'replied' && !/^[1-5]\d\d$/.test(status)) return missing(STATUS);
  return { dialect, method: described, target: uri, status: Number(status) };
}
