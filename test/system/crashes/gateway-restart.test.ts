/**
 * GATEWAY_REUSE_PORT: the new gateway listens before the old one stops, and no connection is refused in between.
 *
 * What the kernel has queued for the old one when it closes its port is reset unless net.ipv4.tcp_migrate_req is set
 * (Linux 5.14), which a test must not do to its machine. Such a connection is tried again here, as HTTP clients do.
 */
import { Agent, get } from 'node:http';
import t from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';

/** Starts clients that open a connection for each request, until stopped. */
function connectOneByOne(port: number, clients: number) {
  const failures: string[] = [];
  let answered = 0;
  let stopped = false;
  const ask = (tries = 3): Promise<void> =>
    new Promise((resolve) => {
      const agent = new Agent({ keepAlive: false });
      get({ port, host: '127.0.0.1', path: '/x', agent }, (res) => {
        res.resume().on('end', () => {
          if (res.statusCode === 200) answered++;
          else failures.push(String(res.statusCode));
          resolve();
        });
      }).on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET' && tries > 1) {
          resolve(ask(tries - 1));
          return;
        }
        failures.push(error.code ?? error.message);
        resolve();
      });
    });
  const loops = Array.from({ length: clients }, async () => {
    while (!stopped) await ask();
  });
  return {
    failures,
    answered: () => answered,
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}

for (const workers of ['1', '2']) {
  t.test(`${workers} process(es): restarts without a refused connection`, async (t) => {
    const upstream = await startUpstream(t);
    const redis = await startRedis(t);
    const env = await environment({
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_WORKERS: workers,
      GATEWAY_REUSE_PORT: '1',
    });
    let gateway = await launch(t, env);
    const clients = connectOneByOne(Number(env.GATEWAY_PORT), 4);
    for (let restart = 0; restart < 3; restart++) {
      const next = await launch(t, env);
      t.equal(await gateway.stop(), 0);
      gateway = next;
      const before = clients.answered();
      await eventually(
        'the new one answers',
        async () => clients.answered(),
        (n) => n > before + 50,
      );
    }
    await clients.stop();
    t.strictSame(clients.failures, []);
  });
}

t.test('without port sharing a port of another gateway is refused', async (t) => {
  const env = await environment({ GATEWAY_REUSE_PORT: '1' });
  await launch(t, env);
  const second = start(['gateway/main.ts'], { ...env, GATEWAY_REUSE_PORT: '0' });
  t.teardown(() => second.stop('SIGKILL'));
  t.equal(await second.ended(), 1);
  t.match(second.output(), /port \d+ is taken/);
});
