/** Redis dies in the middle of a run: requests pass (fail open), audit entries do not (fail closed). */
import { pino } from 'pino';
import t from 'tap';
import { type LimitName, limitTable } from '#api/limits/table.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { startRedis } from '#test/support/redis.ts';
import { STORE_BUDGET_MS } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';

t.test('Redis is killed: requests go on without limits, and limits hold again when it is back', async (t) => {
  const redis = await startRedis(t);
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const api = await startApi(t, {
    env: { REDIS_URL: redis.url, RATE_LIMITING_DISABLED: '0', AUDIT_LOG_ENABLED: '1' },
    clock: Date.now,
    log,
  });
  const { counters, db } = api.context;
  await until(() => counters.isUp());
  const ask = () => api.client('GET', `/api/v2/client/${workspaceId}/environment`);
  const fail = () => openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  const entries = async (): Promise<number> =>
    (await db.selectFrom('auditEvents').select('id').execute()).length;

  const isCacheUp = async (): Promise<boolean> =>
    (await api.client('GET', '/api/v2/health')).json.data.cache_database;
  t.equal(await isCacheUp(), true);
  for (let i = 0; i < 100; i++) t.equal((await ask()).status, 200);
  t.equal((await ask()).status, 429);
  t.equal((await fail()).status, 401);
  t.equal(await entries(), 1);

  await redis.kill();
  await until(async () => !(await isCacheUp()), 'the health check reports it');
  const before = performance.now();
  for (let i = 0; i < 300; i++) {
    const reply = await ask();
    if (reply.status !== 200) t.fail(`request ${i} got ${reply.status} while the store is away`);
  }
  t.ok(performance.now() - before < 150 * STORE_BUDGET_MS, 'no request waits for a store that is down');
  const answer = await fail();
  t.equal(answer.status, 401, 'the login is answered');
  t.match(answer.json.url, /Invalid%20credentials/);
  t.equal(await entries(), 1, 'no audit entry is written without the limit');
  const warned = lines.filter(({ msg }) => String(msg).includes('REDIS_URL does not answer'));
  t.ok(warned.length >= 1, 'the log has a warning');

  await redis.restart();
  await until(() => counters.isUp());
  for (let i = 0; i < 100; i++) t.equal((await ask()).status, 200);
  t.equal((await ask()).status, 429, 'the limit holds without a restart');
  await fail();
  t.equal(await entries(), 2);
  t.ok(lines.some(({ msg }) => String(msg).includes('REDIS_URL answers again')));
  t.notMatch(JSON.stringify(lines), /Wrong1234|owner@example\.com/, 'the log has no secret and no address');
});

t.test('Redis is away: guesses still have a bound, and the other limits have none', async (t) => {
  const redis = await startRedis(t);
  await redis.kill();
  const api = await startApi(t, { env: { REDIS_URL: redis.url, RATE_LIMITING_DISABLED: '0' } });
  const { limits } = api.context;
  const consumed = async (name: LimitName): Promise<boolean> =>
    (await limits.consume(name, 'user:someone')) === null;
  for (const [name, { limit }] of Object.entries(limitTable) as [LimitName, { limit: number }][]) {
    for (let i = 0; i <= limit; i++) t.ok(await consumed(name), name);
  }

  const survey = await addSurvey(api, { pin: '1234' });
  const pin = `/api/v1/client/${workspaceId}/surveys/${survey.id}/pin`;
  for (let i = 0; i < 10; i++) t.equal((await api.client('POST', pin, { pin: '0000' })).status, 403);
  t.equal((await api.client('POST', pin, { pin: '1234' })).status, 429);

  const browser = await logInOwner(api);
  const change = (password: string) => browser.form('/account/email', { email: 'new@example.com', password });
  for (let i = 0; i < 12; i++)
    t.equal((await change('Password1')).status, 303, 'right passwords do not count');
  for (let i = 0; i < 10; i++) t.equal((await change('Wrong1234')).status, 400);
  const refused = await change('Password1');
  t.equal(refused.status, 429, 'the session of somebody else does not find the password by trying');
  t.equal(refused.headers['retry-after'], '600');
});
