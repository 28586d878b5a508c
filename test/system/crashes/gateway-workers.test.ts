/** Several processes on one port: they die, are replaced, and end together. */
import t, { type Test } from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { childrenOf, environment, lives, startGatewayProcess } from '#test/support/gateway-process.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

async function startTwoWorkers(t: Test) {
  const upstream = await startUpstream(t);
  const redis = await startRedis(t);
  const two = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' };
  return { redis, gateway: await startGatewayProcess(t, { GATEWAY_UPSTREAM: upstream.origin, ...two }) };
}

t.test('replaces workers while the store is down', async (t) => {
  const { gateway, redis } = await startTwoWorkers(t);
  await redis.kill();
  for (const worker of childrenOf(gateway.child.pid)) process.kill(worker, 'SIGKILL');
  await gateway.until(/a worker ended[\s\S]*a worker ended/);
  await until(() => gateway.isReady(), 'ready again');
  await until(() => childrenOf(gateway.child.pid).length === 2, 'both again');
  const isAnswered = () =>
    fetch(`${gateway.origin}/x`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isAnswered, 'the port answers');
  await redis.restart();
  t.equal(await gateway.stop(), 0);
});

t.test('killing the supervisor leaves no worker behind, ready or not', async (t) => {
  const { gateway: ready } = await startTwoWorkers(t);
  const starting = start(['gateway/main.ts'], { ...ready.env, ...(await environment()) });
  t.teardown(() => starting.stop('SIGKILL'));
  await until(() => childrenOf(starting.child.pid).length > 0, 'a worker begins');
  for (const gateway of [ready, starting]) {
    const workers = childrenOf(gateway.child.pid);
    t.ok(workers.length > 0);
    gateway.child.kill('SIGKILL');
    await until(() => workers.filter(lives).length === 0, 'all ended');
  }
});
