/** Decides which request headers are forwarded. Clients must not set headers that applications trust. */
import { OVER_HEADER } from './header-names.ts';
import { HOP_BY_HOP } from './hop-by-hop.ts';

/**
 * Applications trust these headers, so neither clients nor proxies may send them: the client address that Formbricks has
 * determined, the header with which old releases of Next.js skip their own checks, and the marks of the gateway.
 */
const PRIVATE: readonly string[] = ['x-formbricks-client-ip', 'x-middleware-subrequest', OVER_HEADER];

/**
 * Headers that are never forwarded unchanged: framing, and headers that the gateway or the application writes itself.
 */
const NEVER_PASSED: readonly string[] = [
  ...HOP_BY_HOP,
  'expect',
  'http2-settings',
  'host',
  'content-length',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  ...PRIVATE,
];

/** Headers that replace the matched method or path. CGI programs read `Proxy` as HTTP_PROXY. */
const OVERRIDES: readonly string[] = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
  'proxy',
];

/** Proxies describe the client in these and in X-Forwarded-*. Only trusted proxies may set them. */
const FORWARDING: readonly string[] = [
  'forwarded',
  'forwarded-for',
  'x-real-ip',
  'x-real-port',
  'true-client-ip',
  'client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'x-client-ip',
  'x-cluster-client-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'do-connecting-ip',
  'x-appengine-user-ip',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-envoy-external-address',
  'x-originating-ip',
  'x-remote-ip',
  'x-remote-addr',
  'proxy-client-ip',
  'wl-proxy-client-ip',
  'x-vercel-forwarded-for',
  'x-vercel-proxied-for',
  'x-nf-client-connection-ip',
  'cloudfront-viewer-address',
  'incap-client-ip',
  'x-sucuri-clientip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-original-proto',
  'x-scheme',
  'x-url-scheme',
  'front-end-https',
];
const X_FORWARDED = /^x-forwarded(?:-|$)/;
/** Reserved for the gateway. */
const X_GATEWAY = 'x-gateway-';

export class HeaderFilter {
  readonly #ofStrangers: ReadonlySet<string>;
  readonly #ofProxies: ReadonlySet<string>;
  readonly #passed: ReadonlySet<string>;

  /** @param passed lower-case names that are forwarded even if a list above contains them */
  constructor(passed: readonly string[] = []) {
    const unless = (names: readonly string[]): string[] => names.filter((name) => !passed.includes(name));
    this.#ofProxies = new Set([...NEVER_PASSED, ...unless(OVERRIDES)]);
    this.#ofStrangers = new Set([...NEVER_PASSED, ...unless(OVERRIDES), ...unless(FORWARDING)]);
    this.#passed = new Set(passed);
  }

  /** @returns whether the header is removed @param trusted the peer is a trusted proxy */
  stops(name: string, trusted: boolean): boolean {
    const lower = name.toLowerCase();
    if ((trusted ? this.#ofProxies : this.#ofStrangers).has(lower)) return true;
    if (lower.startsWith(X_GATEWAY)) return true;
    // CGI and WSGI programs read X_Api_Key as X-Api-Key.
    const isReserved = (!trusted && X_FORWARDED.test(lower)) || lower.includes('_');
    return isReserved && !this.#passed.has(lower);
  }
}

/** Returns the private header that applications may read a name as, because many servers read `_` as `-`. */
function privateHeaderOf(name: string): string | undefined {
  return PRIVATE.find((own) => own.length === name.length && own === name.toLowerCase().replaceAll('_', '-'));
}

/**
 * Checks a request that another proxy forwards. The gateway cannot remove its headers.
 *
 * @param rawHeaders alternating names and values
 * @returns null if no header is reserved for the application or for the gateway
 */
export function privateHeaderProblem(rawHeaders: readonly string[]): string | null {
  const name = rawHeaders.find((text, i) => i % 2 === 0 && privateHeaderOf(text) !== undefined);
  if (name === undefined) return null;
  const owner = privateHeaderOf(name) === OVER_HEADER ? 'gateway' : 'application';
  return `only the ${owner} sets the header ${name}; send the request without it`;
}

/**
 * Reads GATEWAY_PASS_HEADERS.
 *
 * @param text names separated by commas
 * @returns lower-case names
 * @throws Error that says which name is wrong
 */
export function parsePassedHeaders(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  return names
    .filter((name) => name !== '')
    .map((name) => {
      const lower = name.toLowerCase();
      if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(lower)) throw new Error(`"${name}" is not the name of a header`);
      if (
        NEVER_PASSED.includes(lower) ||
        lower.startsWith(X_GATEWAY) ||
        privateHeaderOf(lower) !== undefined
      ) {
        throw new Error(`"${name}" never passes unchanged; leave it out`);
      }
      return lower;
    });
}
