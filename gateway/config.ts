/** The only reader of the environment. Checks every variable at once, and returns readonly settings. */

import { realpathSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { type ProxyTrust, parseTrustedProxies } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import {
  ConfigError,
  type Environment,
  LOG_LEVEL,
  LOG_LEVELS,
  type LogLevel,
  readSettings,
  type SettingsReader,
  unknownVariables,
  type Variable,
} from '#shared/configuration.ts';
import { readRegularFile } from '#shared/regular-file.ts';
import { parseSocketPath, unixPart } from '#shared/unix-socket.ts';
import type { BoundSettings } from './bounds/bounds.ts';
import {
  BOUND_VARIABLES,
  REMOVED_BOUND_VARIABLES,
  readBounds,
  readNetworkPrefix,
} from './bounds/settings.ts';
import {
  DECISION_VARIABLES,
  type DecisionSettings,
  readDecisionSettings,
} from './decision-listener/settings.ts';
import { parsePassedHeaders } from './http/header-filter.ts';
import {
  ENTRANCE_VARIABLES,
  type EntranceSettings,
  readEntranceSettings,
} from './listen/entrance-settings.ts';
import type { KeyPair } from './listen/tls/key-pair.ts';
import type { AccessLogSettings } from './observe/access-log/access-log.ts';
import {
  OPENTELEMETRY_VARIABLES,
  readTracing,
  TRACING_VARIABLES,
  type TracingSettings,
} from './observe/tracing/settings.ts';
import { secondsOf } from './policy/duration.ts';
import { readStoreAccess, type StoreAccess } from './store/access.ts';

export interface GatewayConfig extends EntranceSettings {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  /** Settings of the decision listener; null if there is none. */
  readonly decisionListener: DecisionSettings | null;
  /** Origin, without a path. */
  readonly upstream: string;
  readonly policiesFile: string;
  readonly trust: ProxyTrust;
  /** Lower-case names of the headers in GATEWAY_PASS_HEADERS. */
  readonly passedHeaders: readonly string[];
  readonly workers: number;
  /** Whether another gateway may listen on the same ports, for a restart without interruption. */
  readonly reusePort: boolean;
  readonly upstreamTimeoutMs: Millis;
  readonly drainDelayMs: Millis;
  readonly drainTimeoutMs: Millis;
  readonly logLevel: LogLevel;
  /** Settings of the access log; null if it is off. */
  readonly accessLog: AccessLogSettings | null;
  /** Settings of tracing; null if it is off. */
  readonly tracing: TracingSettings | null;
  readonly bounds: BoundSettings;
  /** Number of leading bits of an IPv6 address that form a network, whose clients share bounds. */
  readonly networkPrefix: number;
  readonly upstreamKeepAliveMs: Millis;
  readonly unreadTimeoutMs: Millis;
  readonly replyBufferBytes: number;
  /** How long addresses of refused clients are stored in memory for operators; null if they are not. */
  readonly showAddressesMs: Millis | null;
  /** Warnings for the log about values that are valid but risky. */
  readonly warnings: readonly string[];
}

/** A separate object, so that the configuration can be logged. */
export interface GatewaySecrets {
  /** The store of the counters; null if they are in this process. */
  readonly store: StoreAccess | null;
  /** The salt of digests; null if the gateway generates one and keeps it in the store. */
  readonly identitySecret: string | null;
  /** Token of the admin listener; null if it requires none. */
  readonly adminToken: string | null;
  /** Contents of the files in `tls`; null if there are none. */
  readonly keyPair: KeyPair | null;
}

/** All variables of the gateway. A test checks that docs/configuration.md has a row for each of them. */
export const GATEWAY_VARIABLES = [
  { name: 'GATEWAY_PORT', default: '8080', meaning: 'TCP port of the public listener' },
  { name: 'GATEWAY_HOST', default: '0.0.0.0', meaning: 'address of the public listener' },
  ...ENTRANCE_VARIABLES,
  {
    name: 'GATEWAY_ADMIN_PORT',
    default: '9090',
    meaning: 'TCP port of the admin listener: `/healthz`, `/readyz`, `/metrics`, the admin API and the page',
  },
  { name: 'GATEWAY_ADMIN_HOST', default: '127.0.0.1', meaning: 'address of the admin listener' },
  {
    name: 'GATEWAY_ADMIN_TOKEN',
    default: '',
    meaning:
      'Bearer token that the admin listener requires for everything but `/healthz` and `/readyz`; unset: no token, and the admin API works on loopback only',
  },
  {
    name: 'GATEWAY_SHOW_ADDRESSES',
    default: 'off',
    meaning:
      'how long the gateway keeps the addresses of refused clients in memory, to show them on the page and in `why`: a time such as `10m`, at most `24h`; or `off`',
  },
  ...DECISION_VARIABLES,
  {
    name: 'GATEWAY_UPSTREAM',
    default: 'http://127.0.0.1:3000',
    meaning:
      'address of the application that the gateway forwards to, also a Unix socket: `unix:/run/app.sock`',
  },
  {
    name: 'GATEWAY_REDIS_URL',
    default: '',
    meaning:
      'address of Redis, the store of the counters, with its certificates and time budget, see [Redis](operating.md#redis); unset: counters are in the memory of the process',
  },
  { name: 'GATEWAY_POLICIES', default: 'policies.yaml', meaning: 'path of the policy file' },
  {
    name: 'GATEWAY_TRUSTED_PROXIES',
    default: 'none',
    meaning:
      'proxies whose `X-Forwarded-For` the gateway trusts: networks as CIDRs separated by commas, `loopback`, a number of hops, or `none`',
  },
  {
    name: 'GATEWAY_PASS_HEADERS',
    default: '',
    meaning:
      'request headers that the gateway forwards although it removes them by default, such as `X-HTTP-Method-Override, x_request_id`',
  },
  {
    name: 'GATEWAY_IDENTITY_SECRET',
    default: '',
    meaning:
      'secret salt for the digests of addresses and keys; unset: the gateway generates one and stores it in Redis',
  },
  {
    name: 'GATEWAY_WORKERS',
    default: '1',
    meaning:
      'number of processes that share the public port, or `auto` for one for each core; more than one needs Redis',
  },
  {
    name: 'GATEWAY_REUSE_PORT',
    default: '0',
    meaning:
      '1 lets an old and a new gateway listen on the same port, so that a restart refuses no connection; with `net.ipv4.tcp_migrate_req=1` in the kernel none is reset either',
  },
  {
    name: 'GATEWAY_UPSTREAM_TIMEOUT_MS',
    default: '30000',
    meaning: 'milliseconds that the application has to begin its reply',
  },
  {
    name: 'GATEWAY_DRAIN_DELAY_MS',
    default: '0',
    meaning:
      'milliseconds after SIGTERM in which `/readyz` is 503 and the gateway still accepts connections, so that a load balancer [learns of the stop](operating.md#stopping-restarting-upgrading)',
  },
  {
    name: 'GATEWAY_DRAIN_TIMEOUT_MS',
    default: '25000',
    meaning: 'milliseconds that requests in flight have to finish after SIGTERM and this delay',
  },
  ...BOUND_VARIABLES,
  {
    name: 'GATEWAY_UPSTREAM_KEEPALIVE_MS',
    default: '4000',
    meaning:
      'milliseconds that a connection to the application may be idle, unless the application names another time',
  },
  {
    name: 'GATEWAY_UNREAD_TIMEOUT_MS',
    default: '60000',
    meaning: 'milliseconds after which a client that reads nothing of its reply is disconnected',
  },
  {
    name: 'GATEWAY_REPLY_BUFFER_BYTES',
    default: '65536',
    meaning: 'bytes of a reply that the gateway reads ahead for a slow client',
  },
  {
    name: 'GATEWAY_ACCESS_LOG',
    default: 'off',
    meaning: 'where to write one JSON line for each request: a file, `-` for standard output, or `off`',
  },
  {
    name: 'GATEWAY_ACCESS_LOG_SAMPLE',
    default: '1',
    meaning: 'share of the requests that are logged, from 0 to 1',
  },
  ...TRACING_VARIABLES,
  LOG_LEVEL,
] as const satisfies readonly Variable[];

const SETTINGS = {
  variables: [...GATEWAY_VARIABLES, ...OPENTELEMETRY_VARIABLES],
  /** Replacements for variables that earlier versions read. */
  removed: {
    ...REMOVED_BOUND_VARIABLES,
    GATEWAY_REDIS_CA: 'write it into GATEWAY_REDIS_URL: rediss://host:6379?ca=FILE',
    GATEWAY_REDIS_CERT: 'write it into GATEWAY_REDIS_URL: rediss://host:6379?cert=FILE&key=FILE',
    GATEWAY_REDIS_KEY: 'write it into GATEWAY_REDIS_URL: rediss://host:6379?cert=FILE&key=FILE',
    GATEWAY_REDIS_SENTINEL_PASSWORD:
      'write it into GATEWAY_REDIS_URL: redis+sentinel://host:26379/service?sentinel_password=PASSWORD',
    GATEWAY_STORE_TIMEOUT_MS: 'write it into GATEWAY_REDIS_URL: redis://host:6379?timeout_ms=50',
    GATEWAY_STREAM_AFTER_MS: 'unset it: a reply that takes longer than 5 s counts as a stream',
  },
} as const;

type VariableName = (typeof GATEWAY_VARIABLES)[number]['name'];

const WORKERS_MAX = 64;

/**
 * @param cores that this process may use
 * @throws ConfigError that lists every variable that is wrong, and what would be right
 */
export function readConfig(
  env: Environment,
  cores = availableParallelism(),
): {
  readonly config: GatewayConfig;
  readonly secrets: GatewaySecrets;
} {
  return readSettings(SETTINGS, env, (read) => {
    const store = read.parse('GATEWAY_REDIS_URL', null, readStoreAccess);
    const hasStore = read.text('GATEWAY_REDIS_URL') !== '';
    const isAuto = read.text('GATEWAY_WORKERS') === 'auto';
    const autoWorkers = hasStore ? Math.min(cores, WORKERS_MAX) : 1;
    const workers = isAuto ? autoWorkers : read.integer('GATEWAY_WORKERS', 1, WORKERS_MAX);
    const showAddressesMs = read.parse('GATEWAY_SHOW_ADDRESSES', null, keptTime);
    const warnings = unknownVariables('GATEWAY', GATEWAY_VARIABLES, env);
    if (isAuto && !hasStore && cores > 1)
      warnings.push(
        `GATEWAY_WORKERS=auto runs one process on ${cores} cores: more than one needs GATEWAY_REDIS_URL`,
      );
    if (showAddressesMs !== null)
      warnings.push(
        `GATEWAY_SHOW_ADDRESSES=${read.text('GATEWAY_SHOW_ADDRESSES')}: operators see the addresses of refused clients, which stay in memory for that time`,
      );
    if (workers > 1 && !hasStore) {
      read.refuse(
        'GATEWAY_WORKERS',
        'more than one process needs GATEWAY_REDIS_URL: processes do not share memory, so limits would multiply',
      );
    }
    const upstream = read.parse('GATEWAY_UPSTREAM', '', upstreamOrigin);
    const trust = read.parse<ProxyTrust>('GATEWAY_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies);
    const { entrance, keyPair } = readEntranceSettings(read, trust);
    const port = read.integer('GATEWAY_PORT', 0, 65_535);
    const adminPort = read.integer('GATEWAY_ADMIN_PORT', 0, 65_535);
    const host = read.text('GATEWAY_HOST');
    if (isOwnAddress(upstream, host, port))
      read.refuse(
        'GATEWAY_UPSTREAM',
        'it is the address of this gateway; name the application, and let one of the two use another port',
      );
    const config: GatewayConfig = {
      ...entrance,
      host,
      port,
      adminHost: read.text('GATEWAY_ADMIN_HOST'),
      adminPort,
      decisionListener: readDecisionSettings(read, trust, [port, adminPort]),
      upstream,
      policiesFile: read.text('GATEWAY_POLICIES'),
      trust,
      passedHeaders: read.parse('GATEWAY_PASS_HEADERS', [], parsePassedHeaders),
      workers,
      reusePort: read.flag('GATEWAY_REUSE_PORT'),
      upstreamTimeoutMs: read.integer('GATEWAY_UPSTREAM_TIMEOUT_MS', 1, 3_600_000),
      drainDelayMs: read.integer('GATEWAY_DRAIN_DELAY_MS', 0, 600_000),
      drainTimeoutMs: read.integer('GATEWAY_DRAIN_TIMEOUT_MS', 0, 3_600_000),
      logLevel: read.choice('LOG_LEVEL', LOG_LEVELS),
      accessLog: accessLogSettings(read),
      tracing: readTracing(read),
      bounds: readBounds(read),
      networkPrefix: readNetworkPrefix(read),
      upstreamKeepAliveMs: read.integer('GATEWAY_UPSTREAM_KEEPALIVE_MS', 1, 600_000),
      unreadTimeoutMs: read.integer('GATEWAY_UNREAD_TIMEOUT_MS', 1000, 3_600_000),
      replyBufferBytes: read.integer('GATEWAY_REPLY_BUFFER_BYTES', 16_384, 16_777_216),
      showAddressesMs,
      warnings,
    };
    const secrets: GatewaySecrets = {
      store,
      identitySecret: read.text('GATEWAY_IDENTITY_SECRET') || null,
      adminToken: read.parse('GATEWAY_ADMIN_TOKEN', null, adminToken),
      keyPair,
    };
    return { config, secrets };
  });
}

const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]'];

/** Whether the gateway would forward each request to itself. */
function isOwnAddress(upstream: string, host: string, port: number): boolean {
  const url = URL.parse(upstream);
  if (url === null || !LOOPBACK_HOSTS.includes(url.hostname)) return false;
  const upstreamPort = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return upstreamPort === port && ['0.0.0.0', '::', url.hostname].includes(host);
}

const KEPT_MS_MAX: Millis = 24 * 3_600_000;

/** @returns null for `off` */
function keptTime(value: string): Millis | null {
  if (value === 'off') return null;
  const ms = /^\d{1,5}[smh]$/.test(value) ? secondsOf(value) * 1000 : 0;
  if (ms === 0 || ms > KEPT_MS_MAX) throw new Error('it must be a time such as 30s, 10m or 24h, or off');
  return ms;
}

function adminToken(value: string): string | null {
  // A header field carries no other characters unchanged, so no client could send it.
  if (!/^[ -~]*$/.test(value)) throw new Error('it must consist of ASCII characters');
  return value || null;
}

function accessLogSettings(read: SettingsReader<VariableName>): AccessLogSettings | null {
  const file = read.text('GATEWAY_ACCESS_LOG');
  const share = read.share('GATEWAY_ACCESS_LOG_SAMPLE');
  return file === 'off' || file === '' ? null : { file, share };
}

/** @returns an origin, or `unix:` and an absolute path */
function upstreamOrigin(value: string): string {
  const part = unixPart(value);
  if (part !== null) {
    if (/[?#]/.test(part)) throw new Error('? and # in a path are written %3F and %23: unix:/run/app.sock');
    return `unix:${parseSocketPath(part, 'unix:/run/app.sock')}`;
  }
  const url = URL.parse(value);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new Error('it must be an address such as http://127.0.0.1:3000');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username + url.password !== '') {
    throw new Error(
      'it must be an origin such as http://127.0.0.1:3000, without user, path, query or fragment',
    );
  }
  return url.origin;
}

const SHIPPED = fileURLToPath(new URL('../policies.yaml', import.meta.url));

/**
 * Floodgate comes with the policies of the survey API. They cover nothing of another application, so in front of one
 * the start asks for a policy file.
 *
 * @throws ConfigError
 */
export function assertPoliciesAreChosen({ GATEWAY_UPSTREAM, GATEWAY_POLICIES }: Environment): void {
  if (!GATEWAY_UPSTREAM || GATEWAY_POLICIES || !isSameFile('policies.yaml', SHIPPED)) return;
  throw new ConfigError([
    'GATEWAY_POLICIES: it is not set, and policies.yaml here has the limits of the survey API. "npx floodgate init my-policies.yaml" writes a file for your application; then set GATEWAY_POLICIES=my-policies.yaml. To use the limits of the survey API, set GATEWAY_POLICIES=policies.yaml',
  ]);
}

function isSameFile(a: string, b: string): boolean {
  try {
    return realpathSync(a) === realpathSync(b);
  } catch {
    return false;
  }
}

/** @throws ConfigError when the file cannot be read */
export function readPolicyFile(file: string): string {
  try {
    return readRegularFile(file);
  } catch (error) {
    throw new ConfigError([whyUnreadable(file, (error as NodeJS.ErrnoException).code)]);
  }
}

function whyUnreadable(file: string, code: string | undefined): string {
  switch (code) {
    case 'ENOENT':
      return `there is no policy file ${file}; "npx floodgate init ${file}" writes one, or set GATEWAY_POLICIES to yours`;
    case 'EISDIR':
      return `the policy file ${file} is a folder; set GATEWAY_POLICIES to the file in it`;
    case 'not a regular file':
      return `the policy file ${file} is not a regular file; set GATEWAY_POLICIES to one`;
    default:
      return `the policy file ${file} cannot be read (${code}); let the user of the gateway read it`;
  }
}
