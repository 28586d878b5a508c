/**
 * The API's settings: the only reader of the environment.
 *
 * Everything is parsed once, at start, into readonly objects. All mistakes are reported together, each with its
 * variable and what would be right. Secrets are kept in an object of their own, so that the rest can be logged.
 */
import { isAbsolute, resolve } from 'node:path';
import { normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import { type AllowedTargets, parseAllowedTargets } from '#api/events/targets.ts';
import { type RecaptchaKeys, readRecaptchaKeys, recaptchaVariables } from '#api/recaptcha.ts';
import {
  readS3Credentials,
  readStorageLocation,
  type S3Credentials,
  type StorageLocation,
  storageVariables,
} from '#api/storage/location.ts';
import type { Seconds } from '#gateway/clock.ts';
import { type ProxyTrust, parseTrustedProxies } from '#gateway/identity/client-ip.ts';

export interface Variable {
  readonly name: string;
  /** What applies when the variable is unset or blank; '' stands for "nothing". */
  readonly default: string;
  readonly meaning: string;
}

/** Every variable the API reads, in the order in which the README shows them. */
export const variables = [
  { name: 'API_PORT', default: '3000', meaning: 'TCP port of the API, 0 for any free one' },
  { name: 'API_HOST', default: '127.0.0.1', meaning: 'address the API listens on' },
  {
    name: 'API_TRUSTED_PROXIES',
    default: 'loopback',
    meaning:
      'proxies whose X-Forwarded-For is believed: CIDRs separated by commas, `loopback`, or a hop count',
  },
  {
    name: 'DATABASE_URL',
    default: 'file:./data/floodgate.sqlite',
    meaning: 'SQLite file, or `file::memory:` for a database that ends with the process',
  },
  {
    name: 'REDIS_URL',
    default: '',
    meaning: "store of the application's own limits (redis:// or rediss://); unset means in-process memory",
  },
  {
    name: 'RATE_LIMITING_DISABLED',
    default: '0',
    meaning: "1 disables the application's own limits; those of the gateway stay",
  },
  {
    name: 'AUDIT_LOG_ENABLED',
    default: '0',
    meaning:
      '1 records failed logins and deletions of files in the table `auditEvents`, without passwords, tokens or addresses',
  },
  {
    name: 'SESSION_MAX_AGE',
    default: '86400',
    meaning: 'seconds until a login ends, 60 to 31536000',
  },
  {
    name: 'SMTP_URL',
    default: '',
    meaning: 'server for mails (smtp:// or smtps://); unset: mails stay in the table `mailOutbox`',
  },
  {
    name: 'MAIL_FROM',
    default: 'Floodgate <noreply@localhost>',
    meaning: 'sender of mails, an address or `Name <address>`',
  },
  {
    name: 'PUBLIC_URL',
    default: 'http://localhost:8080',
    meaning: 'where clients reach the service; absolute addresses in replies start with it',
  },
  {
    name: 'WEBHOOK_ALLOWED_TARGETS',
    default: '',
    meaning:
      'what webhooks may reach inside: host names, addresses and CIDRs, separated by commas; the public internet needs no entry',
  },
  {
    name: 'WEBHOOK_ATTEMPTS',
    default: '8',
    meaning:
      'attempts at a delivery until it is parked, 1 to 20; the pauses between them are 5 s, 10 s and so on, doubling up to an hour',
  },
  {
    name: 'DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS',
    default: '0',
    meaning: '1 lets webhooks reach every address, also private ones; for tests against a local receiver',
  },
  ...storageVariables,
  ...recaptchaVariables,
  { name: 'BOOTSTRAP_WORKSPACE_ID', default: '', meaning: 'id of the first workspace; made up when unset' },
  { name: 'BOOTSTRAP_API_KEY', default: '', meaning: 'first API key; made up and printed once when unset' },
  { name: 'BOOTSTRAP_EMAIL', default: 'owner@example.com', meaning: 'e-mail address of the first user' },
  {
    name: 'BOOTSTRAP_PASSWORD',
    default: '',
    meaning: 'password of the first user; made up and printed once when unset',
  },
  {
    name: 'LOG_LEVEL',
    default: 'info',
    meaning: 'fatal, error, warn, info, debug, trace or silent; the log goes to stderr as JSON lines',
  },
] as const satisfies readonly Variable[];

type Name = (typeof variables)[number]['name'];

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

export type DatabaseLocation =
  | { readonly kind: 'memory' }
  /** `path` is absolute. */
  | { readonly kind: 'file'; readonly path: string };

export interface MailAddress {
  /** '' when there is none. */
  readonly name: string;
  readonly address: string;
}

export interface Config {
  readonly port: number;
  readonly host: string;
  readonly trustedProxies: ProxyTrust;
  readonly database: DatabaseLocation;
  /** Without a slash at the end. */
  readonly publicUrl: string;
  readonly logLevel: LogLevel;
  readonly isRateLimitingDisabled: boolean;
  readonly isAuditLogEnabled: boolean;
  readonly sessionMaxAgeSeconds: Seconds;
  readonly mailFrom: MailAddress;
  readonly webhooks: {
    readonly allowedTargets: AllowedTargets;
    readonly allowsInternalTargets: boolean;
    readonly attemptsMax: number;
  };
  readonly storage: StorageLocation;
  readonly bootstrap: {
    /** null: one is made. */
    readonly workspaceId: string | null;
    readonly email: string;
  };
}

/** What must never be logged. */
export interface Secrets {
  /** May carry a password. null: in-process memory. */
  readonly redisUrl: string | null;
  /** May carry a password. null: mails stay in the outbox. */
  readonly smtpUrl: string | null;
  /** null: the SDK looks for them, or files are no business of S3's. */
  readonly s3: S3Credentials | null;
  /** null: no response is held to it. */
  readonly recaptcha: RecaptchaKeys | null;
  /** null: one is made. */
  readonly bootstrapApiKey: string | null;
  /** null: one is made. */
  readonly bootstrapPassword: string | null;
}

/** Every mistake of the environment at once. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/**
 * @param env usually process.env; blank values count as unset
 * @param cwd what relative paths are relative to
 * @throws ConfigError with one sentence per mistake
 */
export function readConfig(
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): { readonly config: Config; readonly secrets: Secrets } {
  const problems: string[] = [];
  const text = (name: Name): string => {
    const given = env[name]?.trim() ?? '';
    return given === '' ? (variables.find((variable) => variable.name === name)?.default ?? '') : given;
  };
  /** Runs a parser; a refusal becomes a problem that names the variable. */
  const parse = <T>(name: Name, fallback: T, parser: (value: string) => T): T => {
    try {
      return parser(text(name));
    } catch (error) {
      problems.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      return fallback;
    }
  };

  const config: Config = {
    port: parse('API_PORT', 0, parsePort),
    host: parse('API_HOST', '', parseHost),
    trustedProxies: parse('API_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies),
    database: parse<DatabaseLocation>('DATABASE_URL', { kind: 'memory' }, (value) =>
      parseDatabaseUrl(value, cwd),
    ),
    publicUrl: parse('PUBLIC_URL', '', parsePublicUrl),
    logLevel: parse<LogLevel>('LOG_LEVEL', 'info', parseLogLevel),
    isRateLimitingDisabled: parse('RATE_LIMITING_DISABLED', false, parseSwitch),
    isAuditLogEnabled: parse('AUDIT_LOG_ENABLED', false, parseSwitch),
    sessionMaxAgeSeconds: parse('SESSION_MAX_AGE', 0, parseSessionMaxAge),
    mailFrom: parse('MAIL_FROM', { name: '', address: '' }, parseMailFrom),
    webhooks: {
      allowedTargets: parse('WEBHOOK_ALLOWED_TARGETS', { hosts: [], networks: [] }, parseAllowedTargets),
      attemptsMax: parse('WEBHOOK_ATTEMPTS', 1, parseAttempts),
      allowsInternalTargets: parse('DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS', false, parseSwitch),
    },
    storage: readStorageLocation(parse, cwd),
    bootstrap: {
      workspaceId: parse('BOOTSTRAP_WORKSPACE_ID', null, parseWorkspaceId),
      email: parse('BOOTSTRAP_EMAIL', '', parseEmail),
    },
  };
  const secrets: Secrets = {
    redisUrl: parse('REDIS_URL', null, parseRedisUrl),
    smtpUrl: parse('SMTP_URL', null, parseSmtpUrl),
    s3: readS3Credentials(parse),
    recaptcha: readRecaptchaKeys(parse),
    bootstrapApiKey: parse('BOOTSTRAP_API_KEY', null, parseApiKey),
    bootstrapPassword: parse('BOOTSTRAP_PASSWORD', null, parsePassword),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return { config, secrets };
}

function parsePort(value: string): number {
  const port = Number(value);
  if (!/^\d{1,5}$/.test(value) || port > 65_535) {
    throw new Error(`"${value}" is not a port; give a whole number from 0 to 65535`);
  }
  return port;
}

function parseHost(value: string): string {
  if (!/^[A-Za-z0-9.:_-]+$/.test(value)) {
    throw new Error(`"${value}" is not an address; give one such as 127.0.0.1 or 0.0.0.0`);
  }
  return value;
}

function parseDatabaseUrl(value: string, cwd: string): DatabaseLocation {
  if (value === 'file::memory:') return { kind: 'memory' };
  const path = value.startsWith('file://') ? value.slice('file://'.length) : value.slice('file:'.length);
  if (!value.startsWith('file:') || path === '' || path.includes('?') || path.includes('\0')) {
    throw new Error('give file: and a path, such as file:./data/floodgate.sqlite, or file::memory:');
  }
  return { kind: 'file', path: isAbsolute(path) ? path : resolve(cwd, path) };
}

/** The address is not repeated in the message: it may carry a password. */
function parseRedisUrl(value: string): string | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('not a Redis address; give one such as redis://127.0.0.1:6379/0, or leave it unset');
  }
  return value;
}

/** The address is not repeated in the message: it may carry a password. */
function parseSmtpUrl(value: string): string | null {
  if (value === '') return null;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('not a mail server; give one such as smtp://user:password@mail.example.com:587');
  }
  return value;
}

function parseMailFrom(value: string): MailAddress {
  const [, name = '', inBrackets] = /^([^<>\p{Cc}]*)<([^<>]+)>$/u.exec(value) ?? [];
  const address = (inBrackets ?? value).trim();
  if (!/^[^\s@<>,;:"\\]+@[^\s@<>,;:"\\]+$/.test(address)) {
    throw new Error(`"${value}" is no sender; give one such as Feedback <feedback@example.com>`);
  }
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address };
}

function parseSwitch(value: string): boolean {
  if (value !== '0' && value !== '1') throw new Error(`"${value}" is neither 0 nor 1`);
  return value === '1';
}

const WEBHOOK_ATTEMPTS_MAX = 20;

function parseAttempts(value: string): number {
  const attempts = Number(value);
  if (!/^\d{1,2}$/.test(value) || attempts < 1 || attempts > WEBHOOK_ATTEMPTS_MAX) {
    throw new Error(`"${value}" is not a number of attempts from 1 to ${WEBHOOK_ATTEMPTS_MAX}`);
  }
  return attempts;
}

const SESSION_SECONDS_MIN: Seconds = 60;
const SESSION_SECONDS_MAX: Seconds = 31_536_000;

function parseSessionMaxAge(value: string): Seconds {
  const seconds = Number(value);
  if (!/^\d{1,9}$/.test(value) || seconds < SESSION_SECONDS_MIN || seconds > SESSION_SECONDS_MAX) {
    throw new Error(
      `"${value}" is not a number of seconds from ${SESSION_SECONDS_MIN} to ${SESSION_SECONDS_MAX}`,
    );
  }
  return seconds;
}

function parsePublicUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  const isPlain =
    url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!isPlain || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(`"${value}" is not an address; give one such as https://feedback.example.com`);
  }
  return value.replace(/\/+$/, '');
}

function parseLogLevel(value: string): LogLevel {
  const level = logLevels.find((known) => known === value.toLowerCase());
  if (level === undefined) throw new Error(`"${value}" is not a level; give one of ${logLevels.join(', ')}`);
  return level;
}

function parseWorkspaceId(value: string): string | null {
  if (value === '') return null;
  if (!/^[0-9a-z]{1,64}$/.test(value)) {
    throw new Error(`"${value}" is not an id; give 1 to 64 lower-case letters and digits`);
  }
  return value;
}

function parseApiKey(value: string): string | null {
  if (value === '') return null;
  if (!/^[\x21-\x7e]{1,200}$/.test(value)) {
    throw new Error('an API key is 1 to 200 printable ASCII characters without spaces, such as fbk_…');
  }
  return value;
}

function parseEmail(value: string): string {
  const email = normalizeEmail(value);
  if (email === null) throw new Error(`"${value}" is not an e-mail address of at most 255 characters`);
  return email;
}

function parsePassword(value: string): string | null {
  if (value === '') return null;
  const problem = passwordProblem(value);
  if (problem !== null) throw new Error(problem);
  return value;
}
