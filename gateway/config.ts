/** The only reader of the environment: every variable with its default, checked at once, handed down readonly. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { type ProxyTrust, parseTrustedProxies } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import {
  ConfigError,
  type Environment,
  readSettings,
  type SettingsReader,
  type Variable,
} from '#shared/configuration.ts';
import type { AccessLogSettings } from './access-log/access-log.ts';
import { type BoundName, boundVariable } from './bounds/bound-names.ts';
import type { BoundLimits, BoundSettings } from './bounds/bounds.ts';
import {
  DECISION_VARIABLES,
  type DecisionSettings,
  readDecisionSettings,
} from './decision-listener/settings.ts';
import { ENTRANCE_VARIABLES, type EntranceSettings, readEntranceSettings } from './entrance-settings.ts';
import { parsePassedHeaders } from './proxy/header-filter.ts';
import type { StoreAccess } from './store/access.ts';
import { parseStoreAddress } from './store/address.ts';
import { readStoreTls } from './store/tls.ts';
import type { KeyPair } from './tls/key-pair.ts';
import {
  readTracing,
  TRACING_VARIABLES,
  type TracingSecrets,
  type TracingSettings,
} from './tracing/settings.ts';

export interface GatewayConfig extends EntranceSettings {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  /** null: no proxy asks. */
  readonly decisionListener: DecisionSettings | null;
  /** Origin, without a path. */
  readonly upstream: string;
  readonly policiesFile: string;
  readonly trust: ProxyTrust;
  /** Lower-case names. */
  readonly passedHeaders: readonly string[];
  readonly workers: number;
  /** Another gateway may listen on the same ports, for a restart without a gap. */
  readonly reusePort: boolean;
  readonly storeTimeoutMs: Millis;
  readonly upstreamTimeoutMs: Millis;
  readonly drainTimeoutMs: Millis;
  readonly logLevel: string;
  /** null: none is written. */
  readonly accessLog: AccessLogSettings | null;
  /** null: no request is traced. */
  readonly tracing: TracingSettings | null;
  readonly bounds: BoundSettings;
  /** How many bits of an IPv6 address make a network, whose clients have a share together. */
  readonly networkPrefix: number;
  readonly upstreamKeepAliveMs: Millis;
  readonly streamAfterMs: Millis;
  readonly unreadTimeoutMs: Millis;
  readonly replyBufferBytes: number;
  /** What works and may not be what was meant; for the log. */
  readonly warnings: readonly string[];
}

/** Kept apart, so that the configuration can be logged. */
export interface GatewaySecrets {
  /** null: counters in this process. */
  readonly store: StoreAccess | null;
  /** null: made, and kept in the store. */
  readonly identitySecret: string | null;
  /** null: the admin listener asks for none. */
  readonly adminToken: string | null;
  /** What is in the files of `tls`; null where there are none. */
  readonly keyPair: KeyPair | null;
  /** What the collector asks for; null: no request is traced. */
  readonly tracing: TracingSecrets | null;
}

/** The README's table is held to this one by a test. */
export const GATEWAY_VARIABLES = [
  { name: 'GATEWAY_PORT', default: '8080', meaning: 'public listener' },
  { name: 'GATEWAY_HOST', default: '0.0.0.0', meaning: 'its address' },
  ...ENTRANCE_VARIABLES,
  {
    name: 'GATEWAY_ADMIN_PORT',
    default: '9090',
    meaning: '`/healthz`, `/readyz`, `/metrics`, the admin API and the page',
  },
  { name: 'GATEWAY_ADMIN_HOST', default: '127.0.0.1', meaning: 'its address' },
  {
    name: 'GATEWAY_ADMIN_TOKEN',
    default: '',
    meaning: 'what all of it but `/healthz` and `/readyz` asks for',
  },
  ...DECISION_VARIABLES,
  { name: 'GATEWAY_UPSTREAM', default: 'http://127.0.0.1:3000', meaning: 'where to forward' },
  { name: 'GATEWAY_REDIS_URL', default: '', meaning: "the gateway's own store; unset: in-process memory" },
  {
    name: 'GATEWAY_REDIS_SENTINEL_PASSWORD',
    default: '',
    meaning: 'password of the sentinels; that of the servers is in the address',
  },
  { name: 'GATEWAY_REDIS_CA', default: '', meaning: 'PEM file of the authorities that vouch for the store' },
  { name: 'GATEWAY_REDIS_CERT', default: '', meaning: 'PEM file of the certificate to show to the store' },
  { name: 'GATEWAY_REDIS_KEY', default: '', meaning: 'PEM file of its private key' },
  { name: 'GATEWAY_POLICIES', default: 'policies.yaml', meaning: 'the policy file' },
  { name: 'GATEWAY_TRUSTED_PROXIES', default: 'none', meaning: 'CIDRs, or a hop count' },
  {
    name: 'GATEWAY_PASS_HEADERS',
    default: '',
    meaning:
      'request headers that go on although they stop here by default, such as `X-HTTP-Method-Override, x_request_id`',
  },
  {
    name: 'GATEWAY_IDENTITY_SECRET',
    default: '',
    meaning: 'salt of the identity digests; unset: made, kept in the store',
  },
  {
    name: 'GATEWAY_WORKERS',
    default: '1',
    meaning: 'processes sharing the public port, or `auto` for one per core; more than one need Redis',
  },
  {
    name: 'GATEWAY_REUSE_PORT',
    default: '0',
    meaning:
      '1 lets an old and a new gateway listen side by side, for a restart without a refused connection; with `net.ipv4.tcp_migrate_req=1` in the kernel none is reset either',
  },
  { name: 'GATEWAY_STORE_TIMEOUT_MS', default: '50', meaning: 'smallest time budget of a store check' },
  { name: 'GATEWAY_UPSTREAM_TIMEOUT_MS', default: '30000', meaning: "until the upstream's reply begins" },
  { name: 'GATEWAY_DRAIN_TIMEOUT_MS', default: '25000', meaning: 'for requests in flight after SIGTERM' },
  { name: 'GATEWAY_CONNECTIONS', default: '8192', meaning: 'open client connections' },
  { name: 'GATEWAY_CONNECTIONS_PER_CLIENT', default: '512', meaning: 'of one client address' },
  {
    name: 'GATEWAY_UPSTREAM_CONNECTIONS',
    default: '256',
    meaning: 'requests in progress at the upstream; more wait',
  },
  { name: 'GATEWAY_UPSTREAM_CONNECTIONS_PER_CLIENT', default: '64', meaning: 'of one client address' },
  { name: 'GATEWAY_WAITING', default: '4096', meaning: 'requests that wait for an upstream connection' },
  { name: 'GATEWAY_WAITING_PER_CLIENT', default: '256', meaning: 'of one client address' },
  {
    name: 'GATEWAY_UPLOADS',
    default: '128',
    meaning: 'bodies above 16 KiB on their way to the upstream; more wait',
  },
  { name: 'GATEWAY_UPLOADS_PER_CLIENT', default: '32', meaning: 'of one client address' },
  { name: 'GATEWAY_STREAMS', default: '1024', meaning: 'event streams and long replies' },
  { name: 'GATEWAY_STREAMS_PER_CLIENT', default: '64', meaning: 'of one client address' },
  { name: 'GATEWAY_UPGRADES', default: '1024', meaning: 'WebSockets' },
  { name: 'GATEWAY_UPGRADES_PER_CLIENT', default: '64', meaning: 'of one client address' },
  {
    name: 'GATEWAY_PIPELINED',
    default: '4096',
    meaning: 'requests that wait on their own connection for the reply before theirs',
  },
  { name: 'GATEWAY_PIPELINED_PER_CLIENT', default: '2048', meaning: 'of one client address' },
  { name: 'GATEWAY_UNREAD_REPLIES', default: '256', meaning: 'replies whose client reads nothing' },
  { name: 'GATEWAY_UNREAD_REPLIES_PER_CLIENT', default: '64', meaning: 'of one client address' },
  {
    name: 'GATEWAY_IPV6_NETWORK_PREFIX',
    default: '48',
    meaning:
      'all clients of an IPv6 network of this prefix together hold a quarter of each of these at most; `64`: there is no such share',
  },
  {
    name: 'GATEWAY_UPSTREAM_KEEPALIVE_MS',
    default: '4000',
    meaning: 'idle upstream connections are kept so long, unless the upstream names another time',
  },
  {
    name: 'GATEWAY_STREAM_AFTER_MS',
    default: '5000',
    meaning: 'a reply that takes longer counts as a stream',
  },
  {
    name: 'GATEWAY_UNREAD_TIMEOUT_MS',
    default: '60000',
    meaning: 'a client that reads nothing of its reply for so long is cut',
  },
  {
    name: 'GATEWAY_REPLY_BUFFER_BYTES',
    default: '65536',
    meaning: 'of a reply that its client does not take, so much is read ahead',
  },
  {
    name: 'GATEWAY_ACCESS_LOG',
    default: 'off',
    meaning: 'one JSON line for each request: `off`, a file, or `-` for standard output',
  },
  { name: 'GATEWAY_ACCESS_LOG_SAMPLE', default: '1', meaning: 'the share of requests in it, from 0 to 1' },
  ...TRACING_VARIABLES,
  { name: 'LOG_LEVEL', default: 'info', meaning: 'trace, debug, info, warn, error or fatal' },
] as const satisfies readonly Variable[];

type VariableName = (typeof GATEWAY_VARIABLES)[number]['name'];

const WORKERS_MAX = 64;
const BOUND_MAX = 1_000_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

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
  return readSettings(GATEWAY_VARIABLES, env, (read) => {
    const store = storeAccess(read);
    const tracing = readTracing(read);
    const hasStore = read.text('GATEWAY_REDIS_URL') !== '';
    const isAuto = read.text('GATEWAY_WORKERS') === 'auto';
    const autoWorkers = hasStore ? Math.min(cores, WORKERS_MAX) : 1;
    const workers = isAuto ? autoWorkers : read.integer('GATEWAY_WORKERS', 1, WORKERS_MAX);
    const warnings =
      isAuto && !hasStore && cores > 1
        ? [`GATEWAY_WORKERS=auto runs one process on ${cores} cores: more than one need GATEWAY_REDIS_URL`]
        : [];
    if (workers > 1 && !hasStore) {
      read.refuse(
        'GATEWAY_WORKERS',
        'more than one process needs GATEWAY_REDIS_URL: processes do not share memory, so limits would multiply',
      );
    }
    const upstream = read.parse('GATEWAY_UPSTREAM', '', upstreamOrigin);
    const trust = read.parse<ProxyTrust>('GATEWAY_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies);
    const { entrance, keyPair } = readEntranceSettings(read, trust);
    const limitsOf = (name: BoundName): BoundLimits => ({
      total: read.integer(boundVariable(name), 1, BOUND_MAX),
      perClient: read.integer(`${boundVariable(name)}_PER_CLIENT`, 1, BOUND_MAX),
    });
    const port = read.integer('GATEWAY_PORT', 0, 65_535);
    const adminPort = read.integer('GATEWAY_ADMIN_PORT', 0, 65_535);
    const config: GatewayConfig = {
      ...entrance,
      host: read.text('GATEWAY_HOST'),
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
      storeTimeoutMs: read.integer('GATEWAY_STORE_TIMEOUT_MS', 1, 10_000),
      upstreamTimeoutMs: read.integer('GATEWAY_UPSTREAM_TIMEOUT_MS', 1, 3_600_000),
      drainTimeoutMs: read.integer('GATEWAY_DRAIN_TIMEOUT_MS', 0, 3_600_000),
      logLevel: read.choice('LOG_LEVEL', LOG_LEVELS),
      accessLog: accessLogSettings(read),
      tracing: tracing?.settings ?? null,
      bounds: {
        connections: limitsOf('connections'),
        upstream_connections: limitsOf('upstream_connections'),
        waiting: limitsOf('waiting'),
        uploads: limitsOf('uploads'),
        streams: limitsOf('streams'),
        upgrades: limitsOf('upgrades'),
        pipelined: limitsOf('pipelined'),
        unread_replies: limitsOf('unread_replies'),
      },
      networkPrefix: read.integer('GATEWAY_IPV6_NETWORK_PREFIX', 16, 64),
      upstreamKeepAliveMs: read.integer('GATEWAY_UPSTREAM_KEEPALIVE_MS', 1, 600_000),
      streamAfterMs: read.integer('GATEWAY_STREAM_AFTER_MS', 1000, 3_600_000),
      unreadTimeoutMs: read.integer('GATEWAY_UNREAD_TIMEOUT_MS', 1000, 3_600_000),
      replyBufferBytes: read.integer('GATEWAY_REPLY_BUFFER_BYTES', 16_384, 16_777_216),
      warnings,
    };
    const secrets: GatewaySecrets = {
      store,
      identitySecret: read.text('GATEWAY_IDENTITY_SECRET') || null,
      adminToken: read.parse('GATEWAY_ADMIN_TOKEN', null, adminToken),
      keyPair,
      tracing: tracing?.secrets ?? null,
    };
    return { config, secrets };
  });
}

function adminToken(value: string): string | null {
  // A header field carries no other characters unchanged, so no client could send it.
  if (!/^[ -~]*$/.test(value)) throw new Error('it must consist of ASCII characters');
  return value || null;
}

function accessLogSettings(read: SettingsReader<VariableName>): AccessLogSettings | null {
  const file = read.text('GATEWAY_ACCESS_LOG');
  const share = read.parse('GATEWAY_ACCESS_LOG_SAMPLE', 1, (value) => {
    const number = Number(value);
    if (value.trim() === '' || !(number >= 0 && number <= 1))
      throw new Error('it must be a number from 0 to 1, such as 0.1');
    return number;
  });
  return file === 'off' || file === '' ? null : { file, share };
}

function withScheme(value: string, schemes: readonly string[], example: string): URL {
  const url = URL.parse(value);
  if (url === null || !schemes.includes(url.protocol)) {
    throw new Error(`it must be an address such as ${example}`);
  }
  return url;
}

function storeAccess(read: SettingsReader<VariableName>): StoreAccess | null {
  const address = read.parse('GATEWAY_REDIS_URL', null, (value) =>
    value === '' ? null : parseStoreAddress(value),
  );
  const password = read.text('GATEWAY_REDIS_SENTINEL_PASSWORD');
  if (password !== '' && address?.kind !== 'sentinel') {
    read.refuse(
      'GATEWAY_REDIS_SENTINEL_PASSWORD',
      'it needs a GATEWAY_REDIS_URL that begins with redis+sentinel://',
    );
  }
  if (address === null) return null;
  const files = {
    ca: read.text('GATEWAY_REDIS_CA'),
    cert: read.text('GATEWAY_REDIS_CERT'),
    key: read.text('GATEWAY_REDIS_KEY'),
  };
  const tls = readStoreTls(address.tls, files, read.refuse);
  return { address, tls, sentinelPassword: password || null };
}

function upstreamOrigin(value: string): string {
  const url = withScheme(value, ['http:', 'https:'], 'http://127.0.0.1:3000');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username + url.password !== '') {
    throw new Error(
      'it must be an origin such as http://127.0.0.1:3000, without user, path, query or fragment',
    );
  }
  return url.origin;
}

/** @throws ConfigError when the file cannot be read */
export function readPolicyFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([
      `the policy file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}); set GATEWAY_POLICIES`,
    ]);
  }
}
