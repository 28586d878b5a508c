/**
 * Parses GATEWAY_REDIS_URL.
 *
 *     redis://user:password@host:6379/2                  one server, database 2
 *     unix:/run/redis.sock?db=2                          one server, by its Unix socket
 *     redis+cluster://host1:7000,host2:7001              a Cluster; some of its nodes are enough
 *     redis+sentinel://host1:26379,host2/service/2       the primary of `service` according to Sentinel
 *
 * `rediss` instead of `redis` means TLS. Parameters follow a `?`:
 *
 *     ca=FILE, cert=FILE, key=FILE      PEM files for TLS
 *     sentinel_password=PASSWORD        for the sentinels; username and password before the @ are for the servers
 *     timeout_ms=50                     a tenth of the time that a check waits
 *     db=2, username=U, password=P      for unix: only
 */
import { isIPv6 } from 'node:net';
import type { Millis } from '#shared/clock.ts';
import { parseSocketPath, unixPart } from '#shared/unix-socket.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface UnixEndpoint {
  readonly path: string;
}

interface Access {
  readonly tls: boolean;
  /** Name of the user; null for the default user. */
  readonly username: string | null;
  readonly password: string | null;
  readonly tlsFiles: TlsFiles;
  /** Smallest time budget for a check. */
  readonly timeoutMs: Millis;
}

/** Paths of PEM files; '' for none. */
export interface TlsFiles {
  /** Trusted authorities, instead of the public ones. */
  readonly ca: string;
  /** The client certificate with its chain. */
  readonly cert: string;
  readonly key: string;
}

export interface StandaloneAddress extends Access {
  readonly kind: 'standalone';
  readonly endpoint: Endpoint | UnixEndpoint;
  readonly database: number;
}

export interface ClusterAddress extends Access {
  readonly kind: 'cluster';
  /** Nodes to fetch the slot table from; at least one. */
  readonly seeds: readonly Endpoint[];
}

export interface SentinelAddress extends Access {
  readonly kind: 'sentinel';
  /** Addresses of the sentinels, at least one. Username and password are for the servers. */
  readonly sentinels: readonly Endpoint[];
  /** Password of the sentinels; null if they need none. */
  readonly sentinelPassword: string | null;
  /** Name under which the sentinels monitor the primary. */
  readonly service: string;
  readonly database: number;
}

export type StoreAddress = StandaloneAddress | ClusterAddress | SentinelAddress;

const FORMS =
  'redis://host:6379/0, unix:/run/redis.sock, redis+cluster://host1:7000,host2:7000 or redis+sentinel://host1:26379,host2:26379/service/0 (rediss for TLS)';
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const ENDPOINTS_MAX = 64;
const PARAMETERS = ['ca', 'cert', 'key', 'sentinel_password', 'timeout_ms'] as const;
const UNIX_PARAMETERS = ['db', 'username', 'password', 'timeout_ms'] as const;
const TIMEOUT_MS: Millis = 50;
const TIMEOUT_MS_MAX: Millis = 10_000;

/** @throws Error with the mistake, without quoting a secret */
export function parseStoreAddress(text: string): StoreAddress {
  const unix = unixPart(text);
  if (unix !== null) return parseUnixAddress(unix);
  const parts =
    /^redis(s?)(?:\+(cluster|sentinel))?:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(#.*)?$/is.exec(text);
  if (parts === null) throw new Error(`it must be an address such as ${FORMS}`);
  const [, s, kind = '', authority = '', path = '', query = '', fragment] = parts;
  // If an @ follows, this may be part of a password, so the message must not quote it.
  if (fragment !== undefined || query.includes('@'))
    throw new Error('in a password, # is written %23, ? is written %3F, and @ is written %40');
  const parameters = parametersIn(query, PARAMETERS);
  const sentinelPassword = parameters('sentinel_password') || null;
  if (sentinelPassword !== null && kind.toLowerCase() !== 'sentinel')
    throw new Error('sentinel_password needs an address that begins with redis+sentinel://');
  const at = authority.lastIndexOf('@');
  const access: Access = {
    tls: s !== '',
    ...credentials(authority.slice(0, Math.max(0, at)), at >= 0),
    tlsFiles: { ca: parameters('ca'), cert: parameters('cert'), key: parameters('key') },
    timeoutMs: timeout(parameters('timeout_ms')),
  };
  const hosts = authority.slice(at + 1);
  switch (kind.toLowerCase()) {
    case 'cluster': {
      if (path !== '' && path !== '0')
        throw new Error('a Redis Cluster has no databases: end the address with its hosts');
      return { kind: 'cluster', seeds: endpoints(hosts, REDIS_PORT), ...access };
    }
    case 'sentinel': {
      const [service = '', database = '', ...more] = path.split('/');
      if (service === '' || more.length > 0) {
        throw new Error(
          'behind the sentinels comes the name of the service they watch, and then a database if it is not 0: redis+sentinel://host1:26379,host2:26379/service/0',
        );
      }
      return {
        kind: 'sentinel',
        sentinels: endpoints(hosts, SENTINEL_PORT),
        sentinelPassword,
        service: decoded(service, 'name of the service'),
        database: databaseNumber(database),
        ...access,
      };
    }
    default: {
      const [endpoint, ...others] = endpoints(hosts, REDIS_PORT);
      if (endpoint === undefined || others.length > 0) {
        throw new Error('several hosts need redis+cluster:// or redis+sentinel://');
      }
      return { kind: 'standalone', endpoint, database: databaseNumber(path), ...access };
    }
  }
}

function parseUnixAddress(text: string): StandaloneAddress {
  const [, part = '', query = '', fragment] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(text) ?? [];
  if (fragment !== undefined) throw new Error('in a path or a password, # is written %23');
  const path = parseSocketPath(part, 'unix:/run/redis.sock');
  const parameters = parametersIn(query, UNIX_PARAMETERS);
  const [username, password] = [parameters('username'), parameters('password')];
  if (username !== '' && password === '') throw new Error('username needs a password');
  return {
    kind: 'standalone',
    endpoint: { path },
    database: databaseNumber(parameters('db')),
    tls: false,
    username: username || null,
    password: password || null,
    tlsFiles: { ca: '', cert: '', key: '' },
    timeoutMs: timeout(parameters('timeout_ms')),
  };
}

export function endpointName(endpoint: Endpoint | UnixEndpoint): string {
  if ('path' in endpoint) return endpoint.path;
  const { host, port } = endpoint;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @returns function that reads a parameter; '' if it is absent */
function parametersIn<Name extends string>(query: string, names: readonly Name[]): (name: Name) => string {
  // A + is a literal plus here, not a space as in forms.
  const given = new URLSearchParams(query.replaceAll('+', '%2B'));
  for (const name of given.keys()) {
    // Do not quote the parameter in the message, because it may belong to a password.
    if (!(names as readonly string[]).includes(name))
      throw new Error(`after the ? it takes only ${names.join(', ')}; in a password, ? is written %3F`);
    if (given.getAll(name).length > 1) throw new Error(`${name} appears twice`);
  }
  return (name) => given.get(name) ?? '';
}

function timeout(text: string): Millis {
  if (text === '') return TIMEOUT_MS;
  const ms = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (ms < 1 || ms > TIMEOUT_MS_MAX)
    throw new Error(`timeout_ms must be a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  return ms;
}

function credentials(text: string, given: boolean): Pick<Access, 'username' | 'password'> {
  if (!given) return { username: null, password: null };
  const colon = text.indexOf(':');
  if (colon < 0 || colon === text.length - 1) {
    throw new Error('before the @ it takes user:password, or :password for the default user');
  }
  return {
    username: decoded(text.slice(0, colon), 'user') || null,
    password: decoded(text.slice(colon + 1), 'password'),
  };
}

function decoded(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new Error(`a % in the ${what} must be written as %25`, { cause });
  }
}

function databaseNumber(text: string): number {
  if (!/^\d{0,5}$/.test(text)) throw new Error('behind the host comes nothing but the number of a database');
  return Number(text);
}

function endpoints(text: string, defaultPort: number): readonly Endpoint[] {
  const list = text.split(',').map((host) => endpoint(host, defaultPort));
  if (list.length > ENDPOINTS_MAX) throw new Error(`it may name at most ${ENDPOINTS_MAX} hosts`);
  return list;
}

function endpoint(text: string, defaultPort: number): Endpoint {
  const [, ipv6, name = '', digits] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(text) ?? [];
  if (ipv6 === undefined && name === '' && /[[:].*[\]:]/.test(text)) {
    throw new Error('an IPv6 address must be in brackets: [::1]:6379');
  }
  const host = ipv6 ?? name;
  if (host === '') throw new Error('it lacks a host');
  if (ipv6 === undefined ? !/^[\w.-]+$/.test(host) : !isIPv6(host)) {
    throw new Error(
      `"${host}" is neither a host name nor an address; in a user or password, @ / : , and % must be %-encoded`,
    );
  }
  const port = digits === undefined ? defaultPort : /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65_535) throw new Error(`the port of ${host} must be a number from 1 to 65535`);
  return { host, port };
}
