/**
 * What a proxy asks: may this request pass? Each kind of proxy describes the request in its own way. What is missing is
 * never guessed: a request that is not described is not allowed.
 */

/** How a proxy asks, and so how it is answered. */
export type Dialect =
  /** Traefik, Caddy, HAProxy: the reply to a request that must not pass is sent on to the client as it is. */
  | 'forward-auth'
  /** NGINX: of what must not pass it takes 403 only, and the rest from header fields. */
  | 'auth-request'
  /** Envoy: as the first one, but the path stands behind ours. */
  | 'ext-authz';

interface Question {
  readonly ok: true;
  readonly dialect: Dialect;
  readonly method: string;
  /** As the client sent it. */
  readonly target: string;
}

/** What a proxy tells: the application has answered a request. */
export interface Report {
  readonly ok: true;
  readonly dialect: 'replied';
  readonly method: string;
  readonly target: string;
  /** Of the reply. */
  readonly status: number;
}

export interface BadQuestion {
  readonly ok: false;
  /** What is wrong, fit for whoever set up the proxy. */
  readonly reason: string;
}

const METHOD = 'X-Forwarded-Method';
const URI = 'X-Forwarded-Uri';
const FOR = 'X-Forwarded-For';
const STATUS = 'X-Reply-Status';
const EXT_AUTHZ = '/ext-authz';
const REPLIED = '/replied';

/** RFC 9110 9.1; longer than any that is registered. Proxies pass on what clients make up, and it is kept in logs. */
export const METHOD_TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}$/;

/** Methods are told apart by case (RFC 9110 9.1), but many applications read `post` as POST, which policies do not. */
const UPPER_CASE = /^[A-Z-]+$/;

/**
 * Why a request is refused for the method that its client has made up, with which a proxy has nothing to do.
 *
 * @returns null: the method is one that policies can be asked about
 */
export function methodProblem(method: string): string | null {
  return UPPER_CASE.test(method)
    ? null
    : `the method "${method}" is not in upper case; send one such as GET or POST`;
}

/**
 * @param method of the proxy's own request
 * @param target of the proxy's own request
 * @param rawHeaders names and values in turn
 */
export function questionOf(
  method: string,
  target: string,
  rawHeaders: readonly string[],
): Question | Report | BadQuestion {
  if (valuesOf(FOR, rawHeaders).every((value) => value.trim() === ''))
    return missing(FOR, "without it every client would count as the proxy's own address");
  if (target.startsWith(`${EXT_AUTHZ}/`))
    return { ok: true, dialect: 'ext-authz', method, target: target.slice(EXT_AUTHZ.length) };
  const queryAt = target.indexOf('?');
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  if (path !== '/forward-auth' && path !== '/auth-request' && path !== REPLIED)
    return bad('proxies ask here at /forward-auth, /auth-request (NGINX) or below /ext-authz/ (Envoy)');
  const methods = valuesOf(METHOD, rawHeaders);
  const targets = valuesOf(URI, rawHeaders);
  const [described = ''] = methods;
  const [uri = ''] = targets;
  if (described === '') return missing(METHOD, 'it has to name the method of the request');
  if (uri === '') return missing(URI, 'it has to name the path and query of the request');
  if (methods.length > 1)
    return bad(`the proxy sent ${METHOD} more than once; it has to replace the client's`);
  if (targets.length > 1) return bad(`the proxy sent ${URI} more than once; it has to replace the client's`);
  if (!METHOD_TOKEN.test(described)) return bad(`${METHOD} is not a method`);
  const request = { ok: true, method: described, target: uri } as const;
  if (path !== REPLIED)
    return { ...request, dialect: path === '/forward-auth' ? 'forward-auth' : 'auth-request' };
  const [status = '', ...others] = valuesOf(STATUS, rawHeaders);
  if (!/^[1-5]\d\d$/.test(status) || others.length > 0)
    return bad(`the proxy sent no ${STATUS}, or more than one: it has to be the status of the reply`);
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

function missing(name: string, why: string): BadQuestion {
  return bad(`the proxy sent no ${name}: ${why}`);
}

function bad(reason: string): BadQuestion {
  return { ok: false, reason };
}
