/** The only reader of the environment: every variable with its default, checked at once, handed down readonly. */
import { readFileSync } from 'node:fs';
import type { Millis } from './clock.ts';
import { type ProxyTrust, parseTrustedProxies } from './identity/client-ip.ts';

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  /** Origin, without a path. */
  readonly upstream: string;
  readonly policiesFile: string;
  readonly trust: ProxyTrust;
  readonly workers: number;
  readonly storeTimeoutMs: Millis;
  readonly upstreamTimeoutMs: Millis;
  readonly drainTimeoutMs: Millis;
  readonly logLevel: string;
}

/** Kept apart, so that the configuration can be logged. */
export interface GatewaySecrets {
  /** null: counters in this process. May contain a password. */
  readonly redisUrl: string | null;
  /** null: made, and kept in the store. */
  readonly identitySecret: string | null;
  /** null: the admin listener asks for none. */
  readonly adminToken: string | null;
}

export interface Variable {
  readonly name: string;
  /** '' when unset is the default. */
  readonly default: string;
  readonly meaning: string;
}

/** The README's table is held to this one by a test. */
export const GATEWAY_VARIABLES = [
  { name: 'GATEWAY_PORT', default: '8080', meaning: 'public listener' },
  { name: 'GATEWAY_HOST', default: '0.0.0.0', meaning: 'its address' },
  { name: 'GATEWAY_ADMIN_PORT', default: '9090', meaning: '`/healthz`, `/readyz`, `/metrics`' },
  { name: 'GATEWAY_ADMIN_HOST', default: '127.0.0.1', meaning: 'its address' },
  { name: 'GATEWAY_ADMIN_TOKEN', default: '', meaning: 'Bearer token that `/metrics` asks for' },
  { name: 'GATEWAY_UPSTREAM', default: 'http://127.0.0.1:3000', meaning: 'where to forward' },
  { name: 'GATEWAY_REDIS_URL', default: '', meaning: "the gateway's own store; unset: in-process memory" },
  { name: 'GATEWAY_POLICIES', default: 'policies.yaml', meaning: 'the policy file' },
  { name: 'GATEWAY_TRUSTED_PROXIES', default: 'none', meaning: 'CIDRs, or a hop count' },
  {
    name: 'GATEWAY_IDENTITY_SECRET',
    default: '',
    meaning: 'salt of the identity digests; unset: made, kept in the store',
  },
  {
    name: 'GATEWAY_WORKERS',
    default: '1',
    meaning: 'processes sharing the public port; more than one need Redis',
  },
  { name: 'GATEWAY_STORE_TIMEOUT_MS', default: '50', meaning: 'time budget of one check of the store' },
  { name: 'GATEWAY_UPSTREAM_TIMEOUT_MS', default: '30000', meaning: "until the upstream's reply begins" },
  { name: 'GATEWAY_DRAIN_TIMEOUT_MS', default: '25000', meaning: 'for requests in flight after SIGTERM' },
  { name: 'LOG_LEVEL', default: 'info', meaning: 'trace, debug, info, warn, error or fatal' },
] as const satisfies readonly Variable[];

type Name = (typeof GATEWAY_VARIABLES)[number]['name'];

export class ConfigError extends Error {}

const WORKERS_MAX = 64;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

/** @throws ConfigError that lists every variable that is wrong, and what would be right */
export function readConfig(env: Readonly<Record<string, string | undefined>>): {
  readonly config: GatewayConfig;
  readonly secrets: GatewaySecrets;
} {
  const mistakes: string[] = [];
  const text = (name: Name): string => {
    const set = env[name]?.trim();
    return set === undefined || set === ''
      ? (GATEWAY_VARIABLES.find((v) => v.name === name)?.default ?? '')
      : set;
  };
  const integer = (name: Name, min: number, max: number): number => {
    const value = text(name);
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= min && number <= max) return number;
    mistakes.push(`${name} is "${value}"; it must be a whole number from ${min} to ${max}`);
    return min;
  };
  const parsed = <T>(name: Name, fallback: T, parse: (value: string) => T): T => {
    try {
      return parse(text(name));
    } catch (error) {
      mistakes.push(`${name}: ${(error as Error).message}`);
      return fallback;
    }
  };

  const redisUrl = parsed<string | null>('GATEWAY_REDIS_URL', null, (value) =>
    value === '' ? null : redisAddress(value),
  );
  const workers = integer('GATEWAY_WORKERS', 1, WORKERS_MAX);
  if (workers > 1 && redisUrl === null) {
    mistakes.push(
      'GATEWAY_WORKERS above 1 needs GATEWAY_REDIS_URL: processes do not share memory, so limits would multiply',
    );
  }
  const logLevel = text('LOG_LEVEL');
  if (!LOG_LEVELS.includes(logLevel))
    mistakes.push(`LOG_LEVEL is "${logLevel}"; it must be one of ${LOG_LEVELS.join(', ')}`);

  const adminToken = text('GATEWAY_ADMIN_TOKEN');
  // A header field carries no other characters unchanged, so no client could send it.
  if (!/^[ -~]*$/.test(adminToken)) mistakes.push('GATEWAY_ADMIN_TOKEN must consist of ASCII characters');

  const config: GatewayConfig = {
    host: text('GATEWAY_HOST'),
    port: integer('GATEWAY_PORT', 0, 65_535),
    adminHost: text('GATEWAY_ADMIN_HOST'),
    adminPort: integer('GATEWAY_ADMIN_PORT', 0, 65_535),
    upstream: parsed('GATEWAY_UPSTREAM', '', upstreamOrigin),
    policiesFile: text('GATEWAY_POLICIES'),
    trust: parsed<ProxyTrust>('GATEWAY_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies),
    workers,
    storeTimeoutMs: integer('GATEWAY_STORE_TIMEOUT_MS', 1, 10_000),
    upstreamTimeoutMs: integer('GATEWAY_UPSTREAM_TIMEOUT_MS', 1, 3_600_000),
    drainTimeoutMs: integer('GATEWAY_DRAIN_TIMEOUT_MS', 0, 3_600_000),
    logLevel,
  };
  const secrets: GatewaySecrets = {
    redisUrl,
    identitySecret: text('GATEWAY_IDENTITY_SECRET') || null,
    adminToken: adminToken || null,
  };
  if (mistakes.length > 0) throw new ConfigError(mistakes.join('; '));
  return { config, secrets };
}

function withScheme(value: string, schemes: readonly string[], example: string): URL {
  const url = URL.parse(value);
  if (url === null || !schemes.includes(url.protocol)) {
    throw new Error(`it must be an address such as ${example}`);
  }
  return url;
}

/** No query: the client library would take it for options of its own, such as sending a check twice. */
function redisAddress(value: string): string {
  const url = withScheme(value, ['redis:', 'rediss:'], 'redis://localhost:6379');
  if (url.hostname === '' || !/^(?:\/\d{0,5})?$/.test(url.pathname) || url.search !== '' || url.hash !== '') {
    throw new Error(
      'it must be an address such as redis://localhost:6379, with nothing behind it but the number of a database',
    );
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new Error('a % in the user or the password must be written as %25');
  }
  return url.href;
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
    throw new ConfigError(
      `the policy file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}); set GATEWAY_POLICIES`,
    );
  }
}
