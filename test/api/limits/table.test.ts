/**
 * Checks the limits of the application on a real Redis, each with the action that it protects: limit, window, counted
 * identity, and refusal.
 */
import t from 'tap';
import { digestIdentity } from '#api/limits/limiter.ts';
import { type LimitName, limitTable } from '#api/limits/table.ts';
import { addSurvey, apiKey, type Reply, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { type Browser, logInOwner } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const redis = await startRedis(t);
const api = await startApi(t, {
  env: { REDIS_URL: redis.url, RATE_LIMITING_DISABLED: '0' },
  clock: Date.now,
});
const { db, limits, signer } = api.context;
// The store connects in the background; until then nothing is counted.
await until(() => api.context.counters.isUp());

const owner = await logInOwner(api);
const { browser: second } = await addPerson(api, 'Second', 'manager');
const otherKey = await api.addKey({ [workspaceId]: 'manage' });
const survey = await addSurvey(api, { type: 'link' });

type Method = Parameters<typeof api.client>[0];
type Call = () => Promise<Reply>;

/** Sends from a separate address, as the gateway on loopback would. */
const from = (address: string, method: Method, url: string, body?: unknown, headers = {}): Promise<Reply> =>
  api.client(method, url, body, { 'x-forwarded-for': address, ...headers });
const by = (browser: Browser, method: Method, url: string, body?: unknown): Promise<Reply> =>
  browser.call(method, url, body);
const withKey = (key: string, method: Method, url: string, body?: unknown, headers = {}): Promise<Reply> =>
  api.client(method, url, body, { 'x-api-key': key, ...headers });

const A = '198.51.100.1';
const B = '198.51.100.2';
const v1Body = {
  code: 'too_many_requests',
  message: 'Maximum number of requests reached. Please try again later.',
  details: {},
};
const v2Body = { error: { code: 429, message: 'Too Many Requests' } };

interface Row {
  readonly limit: number;
  readonly windowSeconds: number;
  /** Uses up the limit of one caller. */
  readonly one: Call;
  /** Sends as a caller who is counted separately. */
  readonly other: Call;
  /** A request that is counted together with the first caller. */
  readonly same?: Call;
  /** A caller whom the API does not count. */
  readonly free?: Call;
  /** The refusal; that of v1 unless given. */
  readonly body?: unknown;
  /** The identity that the store counts, before it is hashed. */
  readonly identity: string;
}

const users = await db.selectFrom('users').select(['id', 'email']).execute();
const ownerId = users.find(({ email }) => email === 'owner@example.com')?.id ?? '';
const keyIds = await db.selectFrom('apiKeys').select(['id', 'label']).execute();
const keyId = keyIds.find(({ label }) => label === 'First key')?.id ?? '';
const signup = (i: number) => ({ name: 'Me', email: `me${i}@example.com`, password: 'short' });
const mail = { email: 'x@example.com' };
const wrong = { email: 'new@example.com', password: 'Wrong1234' };

const mailLink = (key: string, address: string): Promise<Reply> =>
  from(address, 'POST', `/api/v1/management/surveys/${survey.id}/link-emails`, mail, { 'x-api-key': key });

const upload = { workspaceId, fileName: 'a.png', fileType: 'image/png' };
const file = `/storage/${workspaceId}/public/a.png`;

const rows: Partial<Record<LimitName, Row>> = {
  'auth.signup': {
    limit: 30,
    windowSeconds: 3600,
    one: () => from(A, 'POST', '/auth/signup', signup(1)),
    other: () => from(B, 'POST', '/auth/signup', signup(1)),
    same: () => from(`203.0.113.9, ${A}`, 'POST', '/auth/signup', signup(2)),
    identity: `ip:${A}`,
  },
  'auth.forgotPassword': {
    limit: 5,
    windowSeconds: 3600,
    one: () => from(A, 'POST', '/auth/forgot-password', mail),
    other: () => from(B, 'POST', '/auth/forgot-password', mail),
    identity: `ip:${A}`,
  },
  'auth.verifyEmail': {
    limit: 10,
    windowSeconds: 3600,
    one: () => from('2001:db8::1', 'POST', '/auth/verification-requested', mail),
    other: () => from('2001:db8:0:1::1', 'POST', '/auth/verification-requested', mail),
    same: () => from('2001:db8::2', 'POST', '/auth/verification-requested', mail),
    identity: 'ip:2001:db8::/64',
  },
  'api.v1': {
    limit: 100,
    windowSeconds: 60,
    one: () => by(owner, 'GET', '/api/v1/management/surveys'),
    other: () => by(second, 'GET', '/api/v1/management/surveys'),
    same: () => by(owner, 'GET', '/api/v1/integrations'),
    identity: `user:${ownerId}`,
  },
  'api.v2': {
    limit: 100,
    windowSeconds: 60,
    one: () => withKey(apiKey, 'GET', '/api/v2/me'),
    other: () => withKey(otherKey, 'GET', '/api/v2/me'),
    same: () =>
      from(B, 'GET', '/api/v2/management/responses', undefined, { authorization: `Bearer ${apiKey}` }),
    body: v2Body,
    identity: `key:${keyId}`,
  },
  'api.v3': {
    limit: 100,
    windowSeconds: 60,
    one: () => withKey(apiKey, 'GET', `/api/v3/surveys?workspaceId=${workspaceId}`),
    other: () => by(owner, 'GET', `/api/v3/surveys?workspaceId=${workspaceId}`),
    same: () => withKey(apiKey, 'GET', '/api/v3/nothing'),
    body: v2Body,
    identity: `key:${keyId}`,
  },
  'api.client': {
    limit: 100,
    windowSeconds: 60,
    one: () => from(A, 'GET', `/api/v2/client/${workspaceId}/environment`),
    other: () => from(B, 'GET', `/api/v2/client/${workspaceId}/environment`),
    same: () => from(A, 'PUT', `/api/v1/client/${workspaceId}/displays/x`, {}),
    identity: `ip:${A}`,
  },
  'storage.upload': {
    limit: 5,
    windowSeconds: 60,
    one: () => by(owner, 'POST', '/api/v1/management/storage', upload),
    other: () => by(second, 'POST', '/api/v1/management/storage', upload),
    free: () => withKey(apiKey, 'POST', '/api/v1/management/storage', upload),
    identity: `user:${ownerId}`,
  },
  'storage.delete': {
    limit: 5,
    windowSeconds: 60,
    one: () => by(owner, 'DELETE', file),
    other: () => by(second, 'DELETE', file),
    free: () => withKey(apiKey, 'DELETE', file),
    identity: `user:${ownerId}`,
  },
  'actions.emailUpdate': {
    limit: 3,
    windowSeconds: 3600,
    one: () => by(owner, 'POST', '/account/email', wrong),
    other: () => by(second, 'POST', '/account/email', wrong),
    identity: `user:${ownerId}`,
  },
  'actions.sendLinkSurveyEmail': {
    limit: 10,
    windowSeconds: 3600,
    one: () => mailLink(apiKey, A),
    other: () => mailLink(apiKey, B),
    same: () => mailLink(otherKey, A),
    identity: `ip:${A}`,
  },
  'actions.licenseRecheck': {
    limit: 5,
    windowSeconds: 60,
    one: () => by(owner, 'POST', '/api/v1/license/recheck'),
    other: () => by(second, 'POST', '/api/v1/license/recheck'),
    identity: `user:${ownerId}`,
  },
};

const keyOf = (name: LimitName, identity: string): string =>
  `fga:${name}:${digestIdentity(signer, identity)}`;

for (const [name, row] of Object.entries(rows) as [LimitName, Row][]) {
  t.test(`${name}: ${row.limit} in ${row.windowSeconds} s`, async (t) => {
    t.match(limitTable[name], { limit: row.limit, windowSeconds: row.windowSeconds });
    await redis.client.flushall();
    for (let i = 1; i <= row.limit; i++) {
      const { status } = await row.one();
      if (status === 429) t.fail(`the ${i}th of ${row.limit} was refused`);
    }
    const key = keyOf(name, row.identity);
    t.strictSame(
      // Wrong passwords are counted beside the limit of their route.
      (await redis.client.keys('fga:*')).filter((known) => !known.startsWith('fga:profile.password:')),
      [key],
      'there is one counter, named by a digest',
    );
    const left = await redis.client.pttl(key);
    t.ok(left > (row.windowSeconds - 30) * 1000 && left <= row.windowSeconds * 1000, `${left} ms are left`);

    const refused = await row.one();
    t.equal(refused.status, 429);
    t.strictSame(refused.json, row.body ?? v1Body);
    t.match(refused.headers['content-type'], /^application\/json/);
    const retryAfter = Number(refused.headers['retry-after']);
    t.ok(retryAfter > row.windowSeconds - 30 && retryAfter <= row.windowSeconds, `Retry-After ${retryAfter}`);
    t.equal(refused.headers['access-control-allow-origin'], name === 'api.client' ? '*' : undefined);
    t.equal(refused.headers['cache-control'], 'private, no-store');

    if (row.same) t.equal((await row.same()).status, 429, 'the same caller in another spelling is refused');
    t.not((await row.other()).status, 429, 'another caller is not refused');
    for (let i = 0; row.free !== undefined && i <= row.limit; i++) t.not((await row.free()).status, 429);
    await redis.client.pexpire(key, 0);
    t.not((await row.one()).status, 429, 'the caller is served again after the window');
  });
}

t.test('actions.surveyFollowUp: 50 in 3600 s, per organization', async (t) => {
  await redis.client.flushall();
  for (let i = 0; i < 50; i++) t.equal(await limits.consume('actions.surveyFollowUp', 'org1'), null);
  t.equal(typeof (await limits.consume('actions.surveyFollowUp', 'org1')), 'number');
  t.equal(await limits.consume('actions.surveyFollowUp', 'org2'), null);
  const left = await redis.client.ttl(keyOf('actions.surveyFollowUp', 'org1'));
  t.ok(left > 3570 && left <= 3600);
});

t.test('every row of the table is tested here', async (t) => {
  t.strictSame([...Object.keys(rows), 'actions.surveyFollowUp'].sort(), Object.keys(limitTable).sort());
});

t.test('refuses before it reads the body or the row', async (t) => {
  await redis.client.flushall();
  for (let i = 0; i < 100; i++) await by(owner, 'GET', '/api/v1/me');
  t.equal((await by(owner, 'POST', '/api/v1/management/surveys', '{ no JSON')).status, 429);
  t.equal((await by(owner, 'GET', '/api/v1/management/surveys/unknown')).status, 429);
});

t.test('no limit: health, preflights, and client routes behind the gateway', async (t) => {
  await redis.client.flushall();
  for (let i = 0; i < 130; i++) {
    for (const [method, url] of [
      ['GET', '/api/v2/health'],
      ['GET', '/health'],
      ['OPTIONS', `/api/v2/client/${workspaceId}/environment`],
      ['GET', `/api/v1/client/${workspaceId}/environment`],
    ] as const) {
      const { status } = await from(A, method, url);
      if (status !== 200) t.fail(`${method} ${url} got ${status}`);
    }
  }
  t.strictSame(
    (await redis.client.keys('fga:*')).filter((key) => !key.endsWith(':probe')),
    [],
  );
});

t.test('RATE_LIMITING_DISABLED=1 counts nothing', async (t) => {
  const free = await startApi(t, { env: { REDIS_URL: redis.url, RATE_LIMITING_DISABLED: '1' } });
  for (let i = 0; i < 120; i++) {
    const reply = await free.client('GET', `/api/v2/client/${workspaceId}/environment`);
    if (reply.status !== 200) t.fail(`${reply.status}`);
  }
  t.equal((await free.manage('POST', '/api/v1/management/surveys', surveyBody())).status, 200);
});
