/** The gateway process without its store, and that its secrets stay out of everything it tells. */
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { eventually, startGatewayProcess } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test('Redis is stopped: requests go on, and the gateway recovers by itself', async (t) => {
  const upstream = await startUpstream(t);
  const redis = await startRedis(t, ['--requirepass', 'store-secret'], 'store-secret');
  const policies = policyFile(
    'name: local, route: GET /local, identifier: ip, limit: 5, window: 366d',
    'name: deny, route: GET /api/v1/client/x/deny, identifier: ip, limit: 5, window: 366d, onStoreFailure: deny',
  );
  const env = {
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url.replace('//', '//default:store-secret@'),
    GATEWAY_IDENTITY_SECRET: 'identity-secret',
    GATEWAY_ADMIN_TOKEN: 'admin-secret',
    LOG_LEVEL: 'trace',
  };
  const gateway = await startGatewayProcess(t, env, policies);
  const get = (path: string): Promise<Response> => fetch(gateway.origin + path);
  const headers = { authorization: 'Bearer admin-secret' };
  const ask = async (path: string): Promise<string> =>
    (await fetch(gateway.admin + path, { headers })).text();
  await insideLongWindow();
  t.equal((await get('/local')).status, 200);

  await redis.kill();
  await eventually(
    'noticed',
    () => get('/local').then(() => ask('/readyz')),
    (told) => told.includes('"unavailable"'),
  );
  const denied = await get('/api/v1/client/x/deny');
  t.equal(denied.status, 503);
  t.equal(denied.headers.get('retry-after'), '1');
  t.equal(denied.headers.get('access-control-allow-origin'), '*');
  t.match(await denied.json(), { code: 'gateway_store_unavailable', message: String, details: {} });
  const local = [];
  for (let i = 0; i < 8; i++) local.push((await get('/local')).status);
  t.ok(local.includes(429), 'the local counters hold the limit', { local });
  const top = JSON.parse(await ask('/api/top'));
  t.match(top.store, { available: false, awaySince: /Z$/, processesWithout: 1 });
  t.match(top.policies, [{ policy: 'deny', degraded: 1 }, { policy: 'local' }]);

  await redis.restart();
  await eventually(
    'recovered',
    () => ask('/readyz'),
    (told) => told.includes('"available"'),
  );
  t.equal((await get('/api/v1/client/x/deny')).status, 200);
  t.equal((await get('/local')).status, 429, 'requests admitted during the outage are charged afterwards');
  const metrics = await ask('/metrics');
  t.match(metrics, /^floodgate_store_outages_total [1-9]/m);
  t.equal(await gateway.stop(), 0);
  t.match(gateway.output(), /the store is available again/);
  t.notMatch(gateway.output() + metrics, /-secret/);
});
