/** Checks every row of the edge table against gateway processes, as many as share a store. */
import t, { type Test } from 'tap';
import { everyRow } from '#test/support/edge-rows.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';

async function startGateway(t: Test, upstream: string, more: Record<string, string>): Promise<number> {
  const env = await environment({
    GATEWAY_UPSTREAM: upstream,
    GATEWAY_TRUSTED_PROXIES: 'loopback',
    ...more,
  });
  await launch(t, env);
  return Number(env.GATEWAY_PORT);
}

t.test('one Redis shared by four gateways', async (t) => {
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  everyRow(t, await Promise.all(Array.from({ length: 4 }, () => startGateway(t, upstream.origin, env))));
});

t.test('one Redis, one port, four worker processes', async (t) => {
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  everyRow(t, [
    await startGateway(t, upstream.origin, { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '4' }),
  ]);
});
