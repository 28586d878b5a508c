/** The gateway process without its store. */
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { eventually, startGatewayProcess } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { STORE_BUDGET_MS } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test(
  'Redis is stopped: requests go on within the budget, and the gateway recovers by itself',
  async (t) => {
    const upstream = await startUpstream(t);
    const redis = await startRedis(t);
    const policies = policyFile(
      'name: local, route: GET /local, identifier: ip, limit: 5, window: 366d',
      'name: deny, route: GET /api/v1/client/x/deny, identifier: ip, limit: 5, window: 366d, onStoreFailure: deny',
      'name: allow, route: GET /allow, identifier: ip, limit: 5, window: 366d, onStoreFailure: allow',
    );
    const env = { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_REDIS_URL: redis.url };
    const { origin, admin } = await startGatewayProcess(t, env, policies);
    const get = (path: string): Promise<Response> => fetch(origin + path);
    const readiness = async (): Promise<{ store: string }> =>
      (await (await fetch(`${admin}/readyz`)).json()) as { store: string };
    await insideLongWindow();
    t.equal((await get('/local')).status, 200);

    await redis.kill();
    await eventually(
      'noticed',
      () => get('/local').then(readiness),
      ({ store }) => store === 'unavailable',
    );
    const slow: number[] = [];
    for (let i = 0; i < 20; i++) {
      const asked = performance.now();
      t.equal((await get('/allow')).status, 200);
      slow.push(performance.now() - asked);
    }
    t.ok(Math.max(...slow) < STORE_BUDGET_MS, 'nobody waits for a store that is gone', { slow });
    const denied = await get('/api/v1/client/x/deny');
    t.equal(denied.status, 503);
    t.equal(denied.headers.get('retry-after'), '1');
    t.equal(denied.headers.get('access-control-allow-origin'), '*');
    t.match(await denied.json(), { code: 'gateway_store_unavailable', message: String, details: {} });
    const local = [];
    for (let i = 0; i < 8; i++) local.push((await get('/local')).status);
    t.ok(local.includes(429), 'the local counters hold the limit', { local });
    const top = (await (await fetch(`${admin}/api/top`)).json()) as {
      store: object;
      policies: readonly { policy: string; degraded: number }[];
    };
    t.match(top.store, { available: false, awaySince: /Z$/, processesWithout: 1 });
    const degraded = new Map(top.policies.map((one) => [one.policy, one.degraded]));
    t.ok((degraded.get('local') ?? 0) > 0, 'each policy counts decisions without the store');
    t.equal(degraded.get('allow'), 20);
    t.equal(degraded.get('deny'), 1);

    await redis.restart();
    await eventually('recovered', readiness, ({ store }) => store === 'available');
    t.equal((await get('/api/v1/client/x/deny')).status, 200);
    t.strictSame(
      await Promise.all([get('/local'), get('/local')]).then((replies) =>
        replies.map(({ status }) => status),
      ),
      [429, 429],
      'requests admitted during the outage are charged afterwards',
    );
  },
);

t.test('secrets stay out of log, metrics and readiness, also in an outage', async (t) => {
  const redis = await startRedis(t, ['--requirepass', 'store-secret']);
  const gateway = await startGatewayProcess(t, {
    GATEWAY_REDIS_URL: redis.url.replace('//', '//default:store-secret@'),
    GATEWAY_IDENTITY_SECRET: 'identity-secret',
    GATEWAY_ADMIN_TOKEN: 'admin-secret',
    LOG_LEVEL: 'trace',
  });
  const headers = { authorization: 'Bearer admin-secret' };
  const ask = async (path: string): Promise<string> =>
    (await fetch(gateway.admin + path, { headers })).text();
  const covered = (): Promise<unknown> => fetch(`${gateway.origin}/api/v1/client/x/environment`);
  await covered();
  await redis.kill();
  await until(async () => (await covered().then(() => ask('/readyz'))).includes('unavailable'), 'noticed');
  await redis.restart();
  await until(async () => (await ask('/readyz')).includes('"available"'), 'recovered');
  await covered();
  const metrics = await ask('/metrics');
  t.match(metrics, /floodgate_store_failures_total/);
  t.match(metrics, /^floodgate_store_outages_total [1-9]/m);
  t.equal(await gateway.stop(), 0);
  t.match(gateway.output(), /the store is available again/);
  t.notMatch(gateway.output() + metrics, /-secret/);
});
