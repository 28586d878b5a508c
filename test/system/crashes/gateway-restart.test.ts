/** GATEWAY_REUSE_PORT: the new gateway listens before the old one stops, and no connection is refused in between. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { childrenOf, environment, lives } from '#test/support/gateway-process.ts';
import { hammer } from '#test/support/hammer.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

/** Starts the launcher that `npx floodgate start` and the systemd unit start. @returns how to list its gateways */
async function startLauncher(t: Test, env: Record<string, string>) {
  const launcher = start(['gateway/cli/floodgate.mjs', 'start'], env);
  t.teardown(() => launcher.stop('SIGKILL'));
  await launcher.until(/Gateway ready/);
  return { ...launcher, gateways: () => childrenOf(launcher.child.pid) };
}

t.test(
  'SIGUSR2 replaces the gateway without a refused connection, and the old one ends its requests',
  async (t) => {
    const [arrived, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const upstream = await startUpstream(t, (req, res) => {
      if (req.url !== '/held') return void res.end();
      arrived.resolve();
      held.promise.then(() => res.end('whole'));
    });
    const env = await environment({
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: (await startRedis(t)).url,
      GATEWAY_WORKERS: '2',
      GATEWAY_UPSTREAM_TIMEOUT_MS: '600000',
      GATEWAY_DRAIN_TIMEOUT_MS: '600000',
      GATEWAY_REUSE_PORT: '1',
    });
    const launcher = await startLauncher(t, env);
    const [old = 0] = launcher.gateways();
    const port = Number(env.GATEWAY_PORT);
    const reply = fetch(`http://127.0.0.1:${port}/held`).then((res) => res.text());
    await arrived.promise;
    const clients = hammer(port, '/x', 4, { triesOneByOne: 3 });
    launcher.child.kill('SIGUSR2');
    await launcher.until(/Gateway ready.*Gateway ready/s);
    await launcher.until(/draining/);
    const before = clients.answered();
    await until(() => clients.answered() > before + 50, 'the new one answers');
    t.equal(launcher.gateways().length, 2, 'the old one waits for its request');
    held.resolve();
    t.equal(await reply, 'whole');
    await until(() => !launcher.gateways().includes(old), 'the old one has ended');
    await clients.stop();
    t.strictSame(clients.broken, []);
    t.equal(await launcher.stop('SIGTERM'), 0);
  },
);

t.test('SIGUSR2 keeps the old gateway if the new one cannot start', async (t) => {
  const upstream = await startUpstream(t);
  const policies = join(temporaryFolder(t), 'policies.yaml');
  copyFileSync(join(projectRoot, 'examples/login.yaml'), policies);
  const shared = { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_POLICIES: policies };
  const env = await environment({ ...shared, GATEWAY_REUSE_PORT: '1' });
  const launcher = await startLauncher(t, env);
  const [old] = launcher.gateways();
  writeFileSync(policies, 'version: 2');
  launcher.child.kill('SIGUSR2');
  await launcher.until(/the new gateway did not start, so the old one goes on/);
  t.strictSame(launcher.gateways(), [old]);
  t.equal((await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/`)).status, 200);

  const alone = await startLauncher(
    t,
    await environment(shared).then((more) => ({
      ...more,
      GATEWAY_POLICIES: join(projectRoot, 'examples/login.yaml'),
    })),
  );
  alone.child.kill('SIGUSR2');
  await alone.until(/SIGUSR2 needs GATEWAY_REUSE_PORT=1/);
  t.equal(await alone.stop('SIGTERM'), 0);
});

t.test('two SIGUSR2 at once start one gateway, and SIGTERM in between ends all', async (t) => {
  const upstream = await startUpstream(t);
  const env = await environment({ GATEWAY_UPSTREAM: upstream.origin, GATEWAY_REUSE_PORT: '1' });
  const launcher = await startLauncher(t, env);
  launcher.child.kill('SIGUSR2');
  launcher.child.kill('SIGUSR2');
  await until(() => launcher.gateways().length === 2, 'one more has started');
  const all = launcher.gateways();
  await launcher.stop('SIGTERM');
  t.equal(all.filter(lives).length, 0);
});
