/** Checks every row of the edge table against worker processes. test/gateway/request/limits.test.ts has other stores. */
import t from 'tap';
import { everyRow } from '#test/support/edge-rows.ts';
import { BEHIND_PROXY, startUpstream } from '#test/support/gateway.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';

t.test('one Redis, one port, four worker processes', async (t) => {
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const env = { ...BEHIND_PROXY, GATEWAY_UPSTREAM: upstream.origin, GATEWAY_REDIS_URL: redis.url };
  const { port } = await startGatewayProcess(t, { ...env, GATEWAY_WORKERS: '4' });
  everyRow(t, [port]);
});
