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

/** A Cluster has some nodes to fetch the slot table from. With sentinels, username and password are for the servers. */
export type StoreAddress = Access &
  (
    | { readonly kind: 'standalone'; readonly endpoint: Endpoint | UnixEndpoint; readonly database: number }
    | { readonly kind: 'cluster'; readonly seeds: readonly Endpoint[] }
    | {
        readonly kind: 'sentinel';
        readonly sentinels: readonly Endpoint[];
        /** null if they need none. */
        readonly sentinelPassword: string | null;
        /** Name under which the sentinels monitor the primary. */
        readonly service: string;
        readonly database: number;
      }
  );

export type AddressOf<Kind extends StoreAddress['kind']> = Extract<StoreAddress, { readonly kind: Kind }>;

const FORMS =
  'redis://host:6379/0, unix:/run/redis.sock, redis+cluster://host1:7000,host2:7000 or redis+sentinel://host1:26379,host2:26379/service/0 (rediss for TLS)';
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const PARAMETERS = ['ca', 'cert', 'key', 'timeout_ms'];
const SENTINEL_PARAMETERS = [...PARAMETERS, 'sentinel_password'];
const UNIX_PARAMETERS = ['db', 'username', 'password', 'timeout_ms'];
const TIMEOUT_MS: Millis = 50;
const TIMEOUT_MS_MAX: Millis = 10_000;

/** @throws Error with the mistake, without quoting a secret */
export function parseStoreAddress(text: string): StoreAddress {
  const unix = unixPart(text);
  if (unix !== null) return parseUnixAddress(unix);
  const parts =
    /^redis(s?)(?:\+(cluster|sentinel))?:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(#.*)?$/is.exec(text);
  if (parts === null) throw new Error(`it must be an address such as ${FORMS}`);
  const [, s, written = '', authority = '', path = '', query = '', fragment] = parts;
  const kind = written.toLowerCase();
  // If an @ follows, this may be part of a password, so the message must not quote it.
  if (fragment !== undefined || query.includes('@'))
    throw new Error('in a password, # is written %23, ? is written %3F, and @ is written %40');
  const parameter = parametersIn(query, kind === 'sentinel' ? SENTINEL_PARAMETERS : PARAMETERS);
  const at = authority.lastIndexOf('@');
  const access: Access = {
    tls: s !== '',
    ...(at < 0 ? NOBODY : credentials(authority.slice(0, at))),
    tlsFiles: { ca: parameter('ca'), cert: parameter('cert'), key: parameter('key') },
    timeoutMs: timeout(parameter('timeout_ms')),
  };
  const hosts = authority.slice(at + 1).split(',');
  if (kind === 'cluster') {
    if (path !== '' && path !== '0')
      throw new Error('a Redis Cluster has no databases: end the address with its hosts');
    return { kind, seeds: hosts.map((host) => endpointOf(host, REDIS_PORT)), ...access };
  }
  if (kind === 'sentinel') {
    const [, service = '', database = ''] = /^([^/]+)(?:\/([^/]*))?$/.exec(path) ?? [];
    if (service === '')
      throw new Error(
        'behind the sentinels comes the name of the service they watch, and then a database if it is not 0: redis+sentinel://host1:26379,host2:26379/service/0',
      );
    return {
      kind,
      sentinels: hosts.map((host) => endpointOf(host, SENTINEL_PORT)),
      sentinelPassword: parameter('sentinel_password') || null,
      service: decoded(service),
      database: databaseNumber(database),
      ...access,
    };
  }
  const [host = '', ...others] = hosts;
  if (others.length > 0) throw new Error('several hosts need redis+cluster:// or redis+sentinel://');
  const endpoint = endpointOf(host, REDIS_PORT);
  return { kind: 'standalone', endpoint, database: databaseNumber(path), ...access };
}

const NOBODY = { username: null, password: null };
const NO_FILES: TlsFiles = { ca: '', cert: '', key: '' };

function parseUnixAddress(text: string): StoreAddress {
  const [, part = '', query = '', fragment] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(text) ?? [];
  if (fragment !== undefined) throw new Error('in a path or a password, # is written %23');
  const parameter = parametersIn(query, UNIX_PARAMETERS);
  const [username, password] = [parameter('username') || null, parameter('password') || null];
  if (username !== null && password === null) throw new Error('username needs a password');
  return {
    kind: 'standalone',
    endpoint: { path: parseSocketPath(part, 'unix:/run/redis.sock') },
    database: databaseNumber(parameter('db')),
    ...{ tls: false, username, password, tlsFiles: NO_FILES },
    timeoutMs: timeout(parameter('timeout_ms')),
  };
}

export function endpointName(endpoint: Endpoint | UnixEndpoint): string {
  if ('path' in endpoint) return endpoint.path;
  const { host, port } = endpoint;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** @returns function that reads a parameter; '' if it is absent */
function parametersIn(query: string, names: readonly string[]): (name: string) => string {
  // A + is a literal plus here, not a space as in forms.
  const given = new URLSearchParams(query.replaceAll('+', '%2B'));
  for (const name of given.keys()) {
    // Do not quote the parameter in the message, because it may belong to a password.
    if (!names.includes(name))
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

function credentials(text: string): Pick<Access, 'username' | 'password'> {
  const [, username = '', password] = /^([^:]*):(.+)$/s.exec(text) ?? [];
  if (password === undefined)
    throw new Error('before the @ it takes user:password, or :password for the default user');
  return { username: decoded(username) || null, password: decoded(password) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw new Error('a % in a user, a password or the name of a service must be written as %25', { cause });
  }
}

function databaseNumber(text: string): number {
  if (!/^\d{0,5}$/.test(text)) throw new Error('behind the host comes nothing but the number of a database');
  return Number(text);
}

/** Nothing of the text is quoted, because it may belong to a password. */
function endpointOf(text: string, defaultPort: number): Endpoint {
  const { hostname = '', port = '' } = URL.parse(`redis://${text}`) ?? {};
  if (hostname === '' || port === '0')
    throw new Error(
      'each host is a name or an address, possibly with a port from 1 to 65535: host:6379 or [::1]:6379; in a user or password, @ / : , and % must be %-encoded',
    );
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}
