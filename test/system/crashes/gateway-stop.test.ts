/** The end of the gateway process. */
import { once } from 'node:events';
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { childrenOf, lives, startGatewayProcess } from '#test/support/gateway-process.ts';
import { hammer } from '#test/support/hammer.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

t.test('the signals: one begins the delay, the next one the drain, and another ends it', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url !== '/slow') res.end('hello');
  });
  const redis = await startRedis(t);
  for (const workers of ['1', '2']) {
    const gateway = await startGatewayProcess(t, {
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_WORKERS: workers,
      GATEWAY_DRAIN_DELAY_MS: '600000',
    });
    const { port, isReady } = gateway;
    const pids = childrenOf(gateway.child.pid);
    const request = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n';
    const early = sendRaw(port, request);
    await early.until(/hello$/);
    t.ok(await isReady());
    gateway.child.kill('SIGTERM');
    await gateway.until(/reports that it is not ready/);
    t.notOk(await isReady());
    const late = sendRaw(port, request);
    await late.until(/hello$/);
    early.socket.write(request);
    await early.until(/hello[\s\S]*hello$/);
    for (const client of [early, late]) t.notMatch(client.received(), /Connection: close/i);
    t.notMatch(gateway.output(), /"draining"/);

    const arrived = once(upstream.server, 'request');
    const client = sendRaw(port, 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await arrived;
    gateway.child.kill('SIGTERM');
    await gateway.until(/draining/);
    t.equal(await gateway.stop('SIGTERM'), 1, `${workers} process(es)`);
    await until(() => pids.filter(lives).length === 0, 'no worker stays');
    client.socket.destroy();
  }
});

t.test(
  'SIGTERM under load, two processes and Redis: every request on an open connection gets a whole reply',
  async (t) => {
    const upstream = await startUpstream(t, (_req, res) => {
      setTimeout(() => res.end('x'.repeat(1000)), 2);
    });
    const redis = await startRedis(t);
    const policies = policyFile('name: a, route: GET /a, identifier: ip, limit: 100, window: 1h');
    const two = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' };
    const gateway = await startGatewayProcess(t, { GATEWAY_UPSTREAM: upstream.origin, ...two }, policies);
    const { port } = gateway;
    const load = [hammer(port, '/free', 16), hammer(port, '/a', 16, { anyStatus: true })];

    // An upload whose second half arrives after the shutdown has begun.
    const upload = sendRaw(
      port,
      'POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 200000\r\n\r\n',
    );
    await upload.until(/100 Continue/);
    upload.socket.write('x'.repeat(100_000));
    await until(() => Math.min(...load.map((one) => one.answered())) > 300, 'load');
    gateway.child.kill('SIGTERM');
    await gateway.until(/(?:"signal":"SIGTERM"[\s\S]*){3}/);
    upload.socket.write('x'.repeat(100_000));
    await upload.until(/HTTP\/1\.1 200 OK\r\n[\s\S]*x{1000}$/);
    t.equal(await gateway.ended(), 0);
    await Promise.all(load.map(({ ended }) => ended));
    for (const { broken } of load) t.strictSame(broken, []);
  },
);
