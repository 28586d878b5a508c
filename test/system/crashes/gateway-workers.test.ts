/** Several processes on one port: they die, are replaced, and end together. */
import t, { type Test } from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import {
  childrenOf,
  environment,
  eventually,
  lives,
  startGatewayProcess,
} from '#test/support/gateway-process.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

async function startTwoWorkers(t: Test) {
  const upstream = await startUpstream(t);
  const redis = await startRedis(t);
  const two = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' };
  return { redis, gateway: await startGatewayProcess(t, { GATEWAY_UPSTREAM: upstream.origin, ...two }) };
}

t.test('replaces a worker that dies, and the port stays available', async (t) => {
  const { gateway } = await startTwoWorkers(t);
  const before = childrenOf(gateway.child.pid);
  t.equal(before.length, 2);
  process.kill(before[0] ?? 0, 'SIGKILL');
  await gateway.until(/a worker ended and is replaced/);
  await eventually(
    'two again',
    async () => childrenOf(gateway.child.pid),
    (now) => now.length === 2 && !now.includes(before[0] ?? 0),
  );
  await until(
    () =>
      fetch(`${gateway.origin}/x`).then(
        ({ ok }) => ok,
        () => false,
      ),
    'all answer',
  );
  t.equal(await gateway.stop(), 0);
});

t.test('replaces workers while the store is down', async (t) => {
  const { gateway, redis } = await startTwoWorkers(t);
  await redis.kill();
  for (const worker of childrenOf(gateway.child.pid)) process.kill(worker, 'SIGKILL');
  await gateway.until(/a worker ended[\s\S]*a worker ended/);
  await until(() => gateway.isReady(), 'ready again');
  await until(() => childrenOf(gateway.child.pid).length === 2, 'both again');
  await redis.restart();
  t.equal(await gateway.stop(), 0);
});

t.test('replaces a worker that hangs, and is not ready until then', async (t) => {
  const { gateway } = await startTwoWorkers(t);
  t.ok(await gateway.isReady());
  const [hanging = 0, other = 0] = childrenOf(gateway.child.pid);
  process.kill(hanging, 'SIGSTOP');
  await gateway.until(new RegExp(`"pid":${hanging},.*no sign of life for 10 s`));
  t.notOk(await gateway.isReady());
  await gateway.until(new RegExp(`"pid":${hanging},.*no sign of life for 30 s`));
  await until(() => gateway.isReady(), 'ready again');
  await eventually(
    'two again',
    async () => childrenOf(gateway.child.pid),
    (now) => now.length === 2 && !now.includes(hanging) && now.includes(other),
  );
  t.notMatch(gateway.output(), `"pid":${other},`, 'the other one gives signs of life');
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
