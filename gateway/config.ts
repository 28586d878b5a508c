/** The only reader of the environment. Checks every variable at once, and returns readonly settings. */

import { availableParallelism } from 'node:os';
import {
  type Environment,
  LOG_LEVEL,
  LOG_LEVELS,
  readSettings,
  type SettingsReader,
  unknownVariables,
  type Variable,
} from '#shared/configuration.ts';
import { parseSocketPath, unixPart } from '#shared/unix-socket.ts';
import { BOUND_VARIABLES, readBounds } from './bounds/settings.ts';
import { parsePassedHeaders } from './http/header-filter.ts';
import { HEADER_BYTES, HEADER_BYTES_MAX } from './http/header-size.ts';
import type { Gathered } from './part/part.ts';
import { PARTS, type PartInUse } from './parts.ts';
import { LIMITING_VARIABLES, type LimitingSecrets, readLimitingSettings } from './request/settings.ts';

export type GatewayConfig = Readonly<
  ReturnType<typeof readLimitingSettings>['settings'] & ReturnType<typeof readCore>
>;

/** Everything that the environment says. Only `config` can be logged. */
export interface GatewaySettings {
  readonly config: GatewayConfig;
  readonly secrets: LimitingSecrets;
  /** The optional parts in use, with their settings. */
  readonly parts: readonly (PartInUse & { readonly name: string })[];
  readonly gathered: Gathered;
}

/** Variables of the core. */
const CORE_VARIABLES = [
  ...LIMITING_VARIABLES,
  { name: 'GATEWAY_PORT', default: '8080', meaning: 'TCP port of the public listener' },
  { name: 'GATEWAY_HOST', default: '0.0.0.0', meaning: 'address of the public listener' },
  {
    name: 'GATEWAY_OWN_PARSER',
    default: '1',
    meaning:
      '0: node:http reads all requests. By default the gateway reads plain ones itself, which is cheaper',
  },
  {
    name: 'GATEWAY_UPSTREAM',
    default: 'http://127.0.0.1:3000',
    meaning:
      'address of the application that the gateway forwards to, also a Unix socket: `unix:/run/app.sock`. For `https:` with a certificate of your own authority, see [`NODE_EXTRA_CA_CERTS`](operating.md#when-the-application-does-not-answer)',
  },
  { name: 'GATEWAY_POLICIES', default: 'policies.yaml', meaning: 'path of the policy file' },
  {
    name: 'GATEWAY_PASS_HEADERS',
    meaning:
      'request headers that the gateway forwards instead of [removing](operating.md#what-reaches-the-application) them, such as `X-HTTP-Method-Override, x_request_id`',
  },
  {
    name: 'GATEWAY_WORKERS',
    default: '1',
    meaning: 'number of processes, or `auto` for one for each core; more than one needs Redis',
  },
  {
    name: 'GATEWAY_REUSE_PORT',
    default: '0',
    meaning:
      '1 lets an old and a new gateway listen on the same port, so that a [restart](operating.md#stopping-restarting-upgrading) refuses no connection',
  },
  {
    name: 'GATEWAY_DRAIN_DELAY_MS',
    default: '0',
    meaning:
      'milliseconds after SIGTERM in which the gateway still accepts connections, so that a load balancer [learns of the stop](operating.md#stopping-restarting-upgrading)',
  },
  {
    name: 'GATEWAY_DRAIN_TIMEOUT_MS',
    default: '25000',
    meaning: 'milliseconds that requests in flight have to finish after SIGTERM and this delay',
  },
  ...BOUND_VARIABLES,
  {
    name: 'GATEWAY_HEADER_BYTES',
    default: String(HEADER_BYTES),
    meaning:
      'maximum size of the header section of a request, and of a reply of the application; up to 65536',
  },
  {
    name: 'GATEWAY_KEEPALIVE_MS',
    meaning:
      'milliseconds that a client connection may be [idle](edges.md#idle-connections); unset: 620000 for a trusted proxy, and 65000 for others',
  },
  LOG_LEVEL,
] as const satisfies readonly Variable[];

/** All variables of the gateway. A test checks that docs/configuration.md has a row for each of them. */
export const GATEWAY_VARIABLES: readonly Variable[] = [
  ...CORE_VARIABLES,
  ...Object.values(PARTS).flatMap(({ variables }) => variables),
];

type CoreName = (typeof CORE_VARIABLES)[number]['name'];

const WORKERS_MAX = 64;
/** A timer of Node.js can wait a little longer than this. */
const KEEP_ALIVE_MS_MAX = 86_400_000;

/**
 * @param cores that this process may use
 * @throws ConfigError that lists every variable that is wrong, and what would be right
 */
export function readConfig(env: Environment, cores = availableParallelism()): GatewaySettings {
  return readSettings(GATEWAY_VARIABLES, env, (read: SettingsReader<CoreName>) => {
    const { settings, secrets } = readLimitingSettings(read);
    const warnings = unknownVariables('GATEWAY', GATEWAY_VARIABLES, env);
    const config = { ...settings, ...readCore(read, cores, warnings) };
    const gathered: Gathered = {
      trust: config.trust,
      reusePort: config.reusePort,
      ports: new Set([config.port]),
      warnings,
      scheme: 'http',
      certificate: null,
    };
    const parts = Object.entries(PARTS).flatMap(([name, part]) => {
      const on = part.read(read as SettingsReader<string>, gathered);
      return on === null ? [] : { name, ...on };
    });
    return { config, secrets, parts, gathered };
  });
}

function readCore(read: SettingsReader<CoreName>, cores: number, warnings: string[]) {
  const host = read.text('GATEWAY_HOST');
  const port = read.integer('GATEWAY_PORT', 0, 65_535);
  return {
    host,
    port,
    /** Origin, without a path. */
    upstream: readUpstream(read, host, port),
    policiesFile: read.text('GATEWAY_POLICIES'),
    /** Lower-case names. */
    passedHeaders: read.parse('GATEWAY_PASS_HEADERS', [], parsePassedHeaders),
    workers: readWorkers(read, cores, warnings),
    /** Whether another gateway may listen on the same ports, for a restart without interruption. */
    reusePort: read.flag('GATEWAY_REUSE_PORT'),
    /** Whether the gateway reads plain requests itself, and node:http only the others. */
    hasOwnParser: read.flag('GATEWAY_OWN_PARSER'),
    drainDelayMs: read.integer('GATEWAY_DRAIN_DELAY_MS', 0, 600_000),
    drainTimeoutMs: read.integer('GATEWAY_DRAIN_TIMEOUT_MS', 0, 3_600_000),
    logLevel: read.choice('LOG_LEVEL', LOG_LEVELS),
    ...readBounds(read),
    headerBytesMax: read.integer('GATEWAY_HEADER_BYTES', 4096, HEADER_BYTES_MAX),
    /** null: 620 s for trusted proxies, 65 s for others. */
    keepAliveMs:
      read.text('GATEWAY_KEEPALIVE_MS') === ''
        ? null
        : read.integer('GATEWAY_KEEPALIVE_MS', 1000, KEEP_ALIVE_MS_MAX),
  };
}

function readWorkers(read: SettingsReader<CoreName>, cores: number, warnings: string[]): number {
  const hasStore = read.text('GATEWAY_REDIS_URL') !== '';
  if (read.text('GATEWAY_WORKERS') === 'auto') {
    if (hasStore) return Math.min(cores, WORKERS_MAX);
    if (cores > 1)
      warnings.push(
        `GATEWAY_WORKERS=auto runs one process on ${cores} cores: more than one needs GATEWAY_REDIS_URL`,
      );
    return 1;
  }
  const workers = read.integer('GATEWAY_WORKERS', 1, WORKERS_MAX);
  if (workers > 1 && !hasStore) {
    read.refuse(
      'GATEWAY_WORKERS',
      'more than one process needs GATEWAY_REDIS_URL: processes do not share memory, so limits would multiply',
    );
  }
  return workers;
}

function readUpstream(read: SettingsReader<CoreName>, host: string, port: number): string {
  const upstream = read.parse('GATEWAY_UPSTREAM', '', upstreamOrigin);
  if (isOwnAddress(upstream, host, port))
    read.refuse(
      'GATEWAY_UPSTREAM',
      'it is the address of this gateway; name the application, and let one of the two use another port',
    );
  return upstream;
}

const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]'];

/** Whether the gateway would forward each request to itself. */
function isOwnAddress(upstream: string, host: string, port: number): boolean {
  const url = URL.parse(upstream);
  if (url === null || !LOOPBACK_HOSTS.includes(url.hostname)) return false;
  const upstreamPort = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return upstreamPort === port && ['0.0.0.0', '::', url.hostname].includes(host);
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
