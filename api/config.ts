/**
 * The API's settings, and the only reader of the environment.
 *
 * Everything is parsed once, at start, into readonly objects. All mistakes are reported together, each with its
 * variable and the values that it takes. Secrets are in an object of their own, so that the rest can be logged.
 */
import { resolve } from 'node:path';
import { readRecaptchaKeys, recaptchaVariables } from '#api/auth/recaptcha.ts';
import { type DatabaseLocation, parseDatabaseUrl, withPassword } from '#api/db/location.ts';
import { type AllowedTargets, parseAllowedTargets } from '#api/events/targets.ts';
import type { MailAddress } from '#api/mail/smtp.ts';
import {
  readS3Credentials,
  readStorageBytesMax,
  readStorageLocation,
  storageVariables,
} from '#api/storage/location.ts';
import { parseSurveyUrl, type SurveyUrl } from '#api/values/survey-url.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Seconds } from '#shared/clock.ts';
import {
  type Environment,
  LOG_LEVEL,
  LOG_LEVELS,
  readSettings,
  type SettingsReader,
  unknownVariables,
  type Variable,
} from '#shared/configuration.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import {
  parseApiKey,
  parseEmail,
  parseMailFrom,
  parsePassword,
  parsePublicUrl,
  parseRedisUrl,
  parseSmtpUrl,
  parseWorkspaceId,
} from './setting-values.ts';

/** Every variable that the API reads. docs/configuration.md has a row for each; a test compares them. */
export const variables = [
  { name: 'API_PORT', default: '3000', meaning: 'TCP port of the API, 0 for any free port' },
  { name: 'API_HOST', default: '127.0.0.1', meaning: 'address that the API listens on' },
  {
    name: 'API_REUSE_PORT',
    default: '0',
    meaning:
      '1 lets several [processes](operating.md#processes-of-the-survey-api) of the API listen on the same port',
  },
  {
    name: 'API_TRUSTED_PROXIES',
    default: 'loopback',
    meaning:
      'proxies whose `X-Forwarded-For` the API trusts, written as for the gateway; files are read at the start',
  },
  {
    name: 'DATABASE_URL',
    default: 'file:./data/floodgate.sqlite',
    meaning:
      'a SQLite file, `file::memory:`, or a [PostgreSQL server](operating.md#postgresql-under-the-survey-api)',
  },
  {
    name: 'DATABASE_PASSWORD',
    meaning:
      'password of the user in `DATABASE_URL`, if the address has none; no character has to be encoded',
  },
  {
    name: 'REDIS_URL',
    meaning:
      "address of Redis for the application's own limits (`redis://` or `rediss://`); unset: counters are in the memory of the process",
  },
  {
    name: 'RATE_LIMITING_DISABLED',
    default: '0',
    meaning: "1 disables the application's own limits; the limits of the gateway stay",
  },
  {
    name: 'AUDIT_LOG_ENABLED',
    default: '0',
    meaning: '1 records logins and changes in the table [`auditEvents`](api.md#audit)',
  },
  {
    name: 'AUDIT_RETENTION_DAYS',
    default: '90',
    meaning: 'days after which an entry of `auditEvents` is deleted, up to 36500; 0: never',
  },
  {
    name: 'SIGNUP_ENABLED',
    default: '0',
    meaning:
      '1 lets anybody sign up and gives each of them a new organization; 0: you [add people](operating.md#accounts-of-the-survey-api)',
  },
  {
    name: 'SESSION_MAX_AGE',
    default: '86400',
    meaning: 'seconds after which a login ends, 60 to 31536000',
  },
  {
    name: 'SMTP_URL',
    meaning: 'mail server (`smtp://` or `smtps://`); unset: mails stay in the table `mailOutbox`',
  },
  {
    name: 'MAIL_FROM',
    default: 'Floodgate <noreply@localhost>',
    meaning: 'sender of mails, an address or `Name <address>`',
  },
  {
    name: 'PUBLIC_URL',
    default: 'http://localhost:8080',
    meaning: 'address at which clients reach the service',
  },
  {
    name: 'SURVEY_URL',
    meaning:
      'address at which people answer [link surveys](api.md#where-surveys-are-shown), with `{surveyId}` in it; unset: no links are mailed',
  },
  {
    name: 'SDK_PATH',
    meaning: 'folder of [SDK scripts](api.md#sdk-scripts); read once, at start',
  },
  {
    name: 'WEBHOOK_ALLOWED_TARGETS',
    meaning:
      '[internal targets](events.md#where-webhooks-may-point) that webhooks may reach: host names, addresses and CIDRs',
  },
  {
    name: 'DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS',
    default: '0',
    meaning:
      "1 lets webhooks of the operator's organization reach every address, also private ones; for tests with a local receiver",
  },
  ...storageVariables,
  ...recaptchaVariables,
  { name: 'BOOTSTRAP_WORKSPACE_ID', meaning: 'id of the first workspace; unset: generated' },
  { name: 'BOOTSTRAP_API_KEY', meaning: 'first API key; unset: generated, and printed once' },
  { name: 'BOOTSTRAP_EMAIL', default: 'owner@example.com', meaning: 'e-mail address of the first user' },
  {
    name: 'BOOTSTRAP_PASSWORD',
    meaning: 'password of the first user; unset: generated, and printed once',
  },
  LOG_LEVEL,
] as const satisfies readonly Variable[];

type Settings = ReturnType<typeof readConfig>;
export type Config = Settings['config'];
/** Values that must never be logged. */
export type Secrets = Settings['secrets'];

/** If a variable begins with one of these and is no setting, it is misspelt, or for another program. */
const PREFIXES = ['API', 'BOOTSTRAP', 'S3', 'STORAGE', 'WEBHOOK'];

const RETENTION_DAYS_MAX = 36_500;

const SESSION_SECONDS_MIN: Seconds = 60;
const SESSION_SECONDS_MAX: Seconds = 31_536_000;

/**
 * @param env usually process.env; blank values count as unset
 * @param cwd base of relative paths
 * @throws ConfigError with one sentence for each mistake
 */
export function readConfig(env: Environment, cwd: string) {
  return readSettings(variables, env, (read) => {
    // Read the variables in the order of the table, because mistakes are reported in this order.
    const port = read.integer('API_PORT', 0, 65_535);
    const host = read.text('API_HOST');
    const database = read.parse<DatabaseLocation>('DATABASE_URL', { kind: 'memory' }, (value) =>
      withPassword(parseDatabaseUrl(value, cwd), read.text('DATABASE_PASSWORD')),
    );
    const config = {
      port,
      host,
      /** Whether other processes of the API may listen on the same port. */
      reusePort: readReusePort(read, database),
      trustedProxies: read.parse<ProxyTrust>('API_TRUSTED_PROXIES', { kind: 'none' }, parseTrustedProxies),
      database,
      /** Without a slash at the end. */
      publicUrl: read.parse('PUBLIC_URL', '', parsePublicUrl),
      /** null if link surveys have no address. */
      surveyUrl: read.parse<SurveyUrl | null>('SURVEY_URL', null, parseSurveyUrl),
      /** An absolute path; null without scripts. */
      sdkPath: read.parse('SDK_PATH', null, (value) => (value === '' ? null : resolve(cwd, value))),
      logLevel: read.choice('LOG_LEVEL', LOG_LEVELS),
      isRateLimitingDisabled: read.flag('RATE_LIMITING_DISABLED'),
      isAuditLogEnabled: read.flag('AUDIT_LOG_ENABLED'),
      /** 0 keeps them. */
      auditRetentionDays: read.integer('AUDIT_RETENTION_DAYS', 0, RETENTION_DAYS_MAX),
      /** Whether everybody may sign up. If false, nobody may. */
      isSignupEnabled: read.flag('SIGNUP_ENABLED'),
      sessionMaxAgeSeconds: read.integer('SESSION_MAX_AGE', SESSION_SECONDS_MIN, SESSION_SECONDS_MAX),
      mailFrom: read.parse<MailAddress>('MAIL_FROM', { name: '', address: '' }, parseMailFrom),
      webhooks: {
        allowedTargets: read.parse<AllowedTargets>(
          'WEBHOOK_ALLOWED_TARGETS',
          { hosts: [], networks: [] },
          parseAllowedTargets,
        ),
        allowsInternalTargets: read.flag('DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS'),
      },
      storage: readStorageLocation(read, cwd),
      storageBytesMax: readStorageBytesMax(read),
      bootstrap: {
        /** null to generate one, like the secrets of the first start. */
        workspaceId: read.parse('BOOTSTRAP_WORKSPACE_ID', null, parseWorkspaceId),
        email: read.parse('BOOTSTRAP_EMAIL', '', parseEmail),
      },
    };
    const secrets = {
      /** null for in-process memory. */
      redisUrl: read.parse('REDIS_URL', null, parseRedisUrl),
      /** null if mails stay in the outbox. */
      smtpUrl: read.parse('SMTP_URL', null, parseSmtpUrl),
      s3: readS3Credentials(read),
      recaptcha: readRecaptchaKeys(read.parse),
      bootstrapApiKey: read.parse('BOOTSTRAP_API_KEY', null, parseApiKey),
      bootstrapPassword: read.parse('BOOTSTRAP_PASSWORD', null, parsePassword),
    };
    const warnings = PREFIXES.flatMap((prefix) => unknownVariables(prefix, variables, env));
    return { config, secrets, warnings };
  });
}

function readReusePort(
  read: Pick<SettingsReader<'API_REUSE_PORT' | 'REDIS_URL'>, 'flag' | 'text' | 'refuse'>,
  database: DatabaseLocation,
): boolean {
  const isShared = read.flag('API_REUSE_PORT');
  const missing = [
    ...(database.kind === 'postgres' ? [] : ['DATABASE_URL to a PostgreSQL server']),
    ...(read.text('REDIS_URL') === '' ? ['REDIS_URL'] : []),
  ];
  if (isShared && missing.length > 0) {
    const needed = missing.join(' and ');
    read.refuse('API_REUSE_PORT', `processes on one port share a PostgreSQL server and Redis; set ${needed}`);
  }
  return isShared;
}
