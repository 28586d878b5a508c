import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '#api/config.ts';
import { problemsOf } from '#test/support/api-settings.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

t.test('names each variable that looks like a setting and is none', async (t) => {
  const warnings = (env: Record<string, string>) => readConfig(env, '/').warnings;
  t.strictSame(warnings({ API_WORKERS: '2', STORAGE_PTH: 'x', WEBHOOK_ATTEMPTS: '9', OTHER: '1' }), [
    'API_WORKERS is not a setting and has no effect; unset it',
    'STORAGE_PTH is not a setting and has no effect; did you mean STORAGE_PATH?',
    'WEBHOOK_ATTEMPTS is not a setting and has no effect; unset it',
  ]);
  const serviceLinks = { API_SERVICE_HOST: '10.0.0.1', API_PORT_3000_TCP: 'tcp://10.0.0.1:3000' };
  t.strictSame(warnings({ ...serviceLinks, API_PORT: '3000', S3_BUCKET_NAME: '' }), []);
});

t.test('an empty environment gives all defaults, and no secret', async (t) => {
  const { config, secrets } = readConfig({}, '/srv');
  t.strictSame(config, {
    port: 3000,
    host: '127.0.0.1',
    reusePort: false,
    trustedProxies: config.trustedProxies,
    database: { kind: 'file', path: '/srv/data/floodgate.sqlite' },
    publicUrl: 'http://localhost:8080',
    surveyUrl: null,
    sdkPath: null,
    logLevel: 'info',
    isRateLimitingDisabled: false,
    isAuditLogEnabled: false,
    auditRetentionDays: 90,
    isSignupEnabled: false,
    sessionMaxAgeSeconds: 86_400,
    mailFrom: { name: 'Floodgate', address: 'noreply@localhost' },
    webhooks: { allowedTargets: { hosts: [], networks: [] }, allowsInternalTargets: false },
    storage: { kind: 'disk', path: '/srv/data/uploads' },
    storageBytesMax: 102_400 * 1_048_576,
    bootstrap: { workspaceId: null, email: 'owner@example.com' },
  });
  t.equal(config.trustedProxies.kind, 'cidrs');
  t.strictSame(secrets, {
    redisUrl: null,
    smtpUrl: null,
    s3: null,
    recaptcha: null,
    bootstrapApiKey: null,
    bootstrapPassword: null,
  });
});

t.test('API_REUSE_PORT needs PostgreSQL and Redis, and names the one that is missing', async (t) => {
  const postgres = { DATABASE_URL: 'postgres://floodgate@db.example.com/floodgate' };
  const redis = { REDIS_URL: 'redis://cache.example.com' };
  const shared = { API_REUSE_PORT: '1', ...postgres, ...redis };
  t.equal(readConfig(shared, '/srv').config.reusePort, true);
  const why = 'API_REUSE_PORT: processes on one port share a PostgreSQL server and Redis; set';
  for (const [env, missing] of [
    [redis, 'DATABASE_URL to a PostgreSQL server'],
    [{ ...redis, DATABASE_URL: 'file::memory:' }, 'DATABASE_URL to a PostgreSQL server'],
    [postgres, 'REDIS_URL'],
    [{}, 'DATABASE_URL to a PostgreSQL server and REDIS_URL'],
  ] as const) {
    t.strictSame(problemsOf({ API_REUSE_PORT: '1', ...env }), [`${why} ${missing}`]);
    t.strictSame(problemsOf({ API_REUSE_PORT: '0', ...env }), []);
  }
});

t.test('reads every variable', async (t) => {
  const { config, secrets } = readConfig(
    {
      API_PORT: ' ',
      API_TRUSTED_PROXIES: '2',
      DATABASE_URL: 'file:/var/lib/x.sqlite',
      REDIS_URL: 'rediss://user:secret@redis.example.com:6380/1?family=6',
      PUBLIC_URL: 'https://feedback.example.com/base/',
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
      BOOTSTRAP_API_KEY: 'any-key',
      BOOTSTRAP_EMAIL: 'Me@Example.com',
      BOOTSTRAP_PASSWORD: 'Password1',
      LOG_LEVEL: 'DEBUG',
      RATE_LIMITING_DISABLED: '1',
      AUDIT_LOG_ENABLED: '1',
      SESSION_MAX_AGE: '3600',
      SMTP_URL: 'smtps://me:hunter2@mail.example.com',
      MAIL_FROM: '"The Team" <team@example.com>',
      SDK_PATH: 'sdk',
      SURVEY_URL: 'http://localhost:4000/answer?id={surveyId}&x=1',
    },
    '/srv',
  );
  t.match(config, {
    port: 3000,
    trustedProxies: { kind: 'hops', hops: 2 },
    database: { kind: 'file', path: '/var/lib/x.sqlite' },
    publicUrl: 'https://feedback.example.com/base',
    logLevel: 'debug',
    isRateLimitingDisabled: true,
    isAuditLogEnabled: true,
    sessionMaxAgeSeconds: 3600,
    mailFrom: { name: 'The Team', address: 'team@example.com' },
    sdkPath: '/srv/sdk',
    surveyUrl: 'http://localhost:4000/answer?id={surveyId}&x=1',
    bootstrap: { workspaceId: 'ws1', email: 'me@example.com' },
  });
  t.strictSame(secrets, {
    redisUrl: 'rediss://user:secret@redis.example.com:6380/1?family=6',
    smtpUrl: 'smtps://me:hunter2@mail.example.com',
    s3: null,
    recaptcha: null,
    bootstrapApiKey: 'any-key',
    bootstrapPassword: 'Password1',
  });
  t.notMatch(JSON.stringify(config), /secret|any-key|Password1|hunter2/);
});

t.test('the password of the database can be in a variable of its own', async (t) => {
  const passwordOf = (env: Record<string, string>): unknown => {
    const { database } = readConfig(env, '/srv').config;
    const password = database.kind === 'postgres' ? database.config.password : null;
    return typeof password === 'function' ? password() : password;
  };
  const DATABASE_PASSWORD = 'p@ss:w/rd?#%';
  t.equal(passwordOf({ DATABASE_URL: 'postgres://me@db/feedback', DATABASE_PASSWORD }), DATABASE_PASSWORD);
  t.equal(passwordOf({ DATABASE_URL: 'postgres://me:hunter2@db/feedback', DATABASE_PASSWORD }), 'hunter2');
  t.equal(passwordOf({ DATABASE_URL: 'postgres://me@db/feedback' }), undefined);
  t.equal(passwordOf({ DATABASE_PASSWORD }), null, 'an SQLite file has no password');
  for (const DATABASE_URL of ['postgres://me@db/feedback', 'postgres://me:p@ss@db/feedback']) {
    const { config } = readConfig({ DATABASE_URL, DATABASE_PASSWORD }, '/srv');
    t.notMatch(JSON.stringify(config), 'p@ss', 'the logged configuration has no password');
  }
});

t.strictSame(readConfig({ DATABASE_URL: 'file::memory:' }, '/srv').config.database, { kind: 'memory' });

t.test('the error names the variable whose value is wrong', async (t) => {
  const file = join(import.meta.dirname, 'settings.md');
  for (const [name = '', value = ''] of casesUnder(file, 'Values that no setting may have')) {
    const problems = problemsOf({ [name]: value });
    t.equal(problems.length, 1, `${name}=${value}`);
    t.match(problems[0], new RegExp(`^${name}: \\S`), `${name}=${value}`);
  }
});

t.test('reports all mistakes together, in the order of the variables', async (t) => {
  const problems = problemsOf({ LOG_LEVEL: 'loud', API_PORT: 'x', PUBLIC_URL: 'x' });
  t.strictSame(
    problems.map((problem) => problem.split(':')[0]),
    ['API_PORT', 'PUBLIC_URL', 'LOG_LEVEL'],
  );
});

t.test('an error message contains no secret', async (t) => {
  const problems = problemsOf({
    REDIS_URL: 'http://:hunter2@x',
    SMTP_URL: 'http://:hunter2@x',
    BOOTSTRAP_API_KEY: 'hunter2 x',
    BOOTSTRAP_PASSWORD: 'hunter2',
  });
  t.equal(problems.length, 4);
  t.notMatch(problems.join(), /hunter2/);
});
