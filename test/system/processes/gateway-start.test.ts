/** How the process starts, how it refuses to, and what it tells. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, startGatewayProcess } from '#test/support/gateway-process.ts';
import { listen } from '#test/support/listen.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { sendTls } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';
import { refusedStarts } from './refused-starts.ts';

t.test('anything that prevents a start exits with 1 and one clear sentence', async (t) => {
  const folder = temporaryFolder(t);
  const taken = createServer();
  const port = String(await listen(t, taken));
  const redis = await startRedis(t);
  writeFileSync(
    join(folder, 'bad.yaml'),
    policyFile('name: a, route: GET /a, identifier: ip, limit: 0, window: 1m'),
  );

  const values = { port, folder, redis: redis.url };
  for (const { env, told, line } of refusedStarts('The gateway', values)) {
    const gateway = start(['gateway/main.ts'], await environment(env));
    t.teardown(() => gateway.stop('SIGKILL'));
    t.equal(await gateway.ended(), 1, line);
    for (const text of told) t.match(gateway.output(), text, line);
    t.equal(gateway.output().match(/cannot start/g)?.length, 1, `${line}: reported once`);
    t.notMatch(gateway.output(), /\n {4}at |50%off/, `${line}: no stack trace and no secret`);
  }
});

t.test('the admin listener: health, readiness, metrics, none of it on the public port', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(418).end());
  const policies = policyFile('name: a, route: POST /a, identifier: ip, limit: 5, window: 366d');
  for (const workers of ['1', '2']) {
    await t.test(`${workers} process(es)`, async (t) => {
      const redis = await startRedis(t);
      const store = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: workers };
      const env = { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_ADMIN_TOKEN: 'secret token', ...store };
      const { admin, origin } = await startGatewayProcess(t, env, policies);
      t.equal((await fetch(`${admin}/healthz`)).status, 200);
      t.strictSame(await (await fetch(`${admin}/readyz`)).json(), { status: 'ready', store: 'available' });
      t.equal((await fetch(`${admin}/metrics`)).status, 401, 'metrics need the token');
      t.equal((await fetch(`${admin}/elsewhere`)).status, 404);
      t.equal((await fetch(`${origin}/metrics`)).status, 418, 'the public port forwards the path');

      await insideLongWindow();
      for (let i = 0; i < 7; i++) await fetch(`${origin}/a`, { method: 'POST' });
      const headers = { authorization: 'Bearer secret token' };
      const lines = [
        'floodgate_policy_decisions_total{policy="a",decision="allowed"} 5',
        'floodgate_policy_decisions_total{policy="a",decision="denied"} 2',
        'floodgate_requests_total{outcome="denied"} 2',
        'floodgate_requests_total{outcome="uncovered"} 1',
        // One of them was answered for /metrics on the public port.
        'floodgate_decision_duration_seconds_count 8',
        'floodgate_decision_duration_seconds_bucket{le="+Inf"} 8',
        'floodgate_upstream_duration_seconds_count 6',
        ...(workers === '1' ? [] : ['floodgate_workers 2', 'floodgate_worker_restarts_total 0']),
      ];
      // A worker that is late with its answer is counted in a later scrape.
      let text = '';
      await until(async () => {
        text = await (await fetch(`${admin}/metrics`, { headers })).text();
        return lines.every((line) => text.includes(`\n${line}\n`));
      }, lines.join());
      t.match(text, /^# TYPE floodgate_store_duration_seconds histogram$/m);
      t.match(text, /^process_resident_memory_bytes \d+$/m);
      t.notMatch(text, /127\.0\.0\.1|fbk_/, 'no metric has an identity');
    });
  }
});

t.test('SIGHUP before it is ready does not end the gateway', async (t) => {
  const redis = await startRedis(t);
  const door = createServer({ pauseOnConnect: true });
  const port = await listen(t, door);
  const gateway = start(
    ['gateway/main.ts'],
    await environment({ GATEWAY_REDIS_URL: `redis://127.0.0.1:${port}` }),
  );
  t.teardown(() => gateway.stop('SIGKILL'));
  const [near] = await once(door, 'connection');
  gateway.child.kill('SIGHUP');
  const far = connect(redis.port, '127.0.0.1');
  near.pipe(far).pipe(near);
  near.on('error', () => far.destroy());
  far.on('error', () => near.destroy());
  near.resume();
  await gateway.until(/Gateway ready/);
  t.equal(await gateway.stop(), 0);
});

t.test('V8 allocates all objects as young ones, whatever early requests left', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end());
  const env = await environment({ GATEWAY_UPSTREAM: upstream.origin });
  const flags = ['--max-semi-space-size=1', '--trace-gc', '--trace-pretenuring-statistics'];
  const gateway = start([...flags, 'gateway/main.ts'], env);
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  for (let i = 0; i < 200; i++) {
    const socket = connect(Number(env.GATEWAY_PORT), '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    await once(socket, 'data');
  }
  const [, afterStart = ''] = gateway.output().split('Gateway ready');
  t.match(afterStart, /Scavenge/, 'V8 has collected young objects');
  t.notMatch(afterStart, /tenure/);
});

t.test('logs a warning if the admin listener is reachable from outside without a token', async (t) => {
  const everywhere = { GATEWAY_ADMIN_HOST: '0.0.0.0' };
  const open = await startGatewayProcess(t, everywhere);
  await open.until(/set GATEWAY_ADMIN_TOKEN/);
  const guarded = await startGatewayProcess(t, { ...everywhere, GATEWAY_ADMIN_TOKEN: 'token' });
  const inside = await startGatewayProcess(t);
  for (const quiet of [guarded, inside]) t.notMatch(quiet.output(), /GATEWAY_ADMIN_TOKEN/);
});

t.test('the address in the ready line can be copied, also with IPv6', async (t) => {
  const hasIPv6 = Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.address === '::1');
  const [host, shown] = hasIPv6 ? ['::1', '[::1]'] : ['localhost', 'localhost'];
  const gateway = await startGatewayProcess(t, { GATEWAY_HOST: host, GATEWAY_PORT: '0' });
  const url = / on (http:\S+),/.exec(gateway.output())?.[1] ?? '';
  t.ok(url.startsWith(`http://${shown}:`), url);
  t.equal((await fetch(`${url}/x`)).status, 502, 'the port answers, without an upstream');
});

t.test('with TLS it says https, and SIGHUP takes the certificate anew in every worker', async (t) => {
  const authority = createAuthority(t);
  const { cert, key } = authority.issue('server', 'IP:127.0.0.1');
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const redis = await startRedis(t);
  const gateway = await startGatewayProcess(t, {
    GATEWAY_TLS_CERT: cert,
    GATEWAY_TLS_KEY: key,
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
  });
  t.match(gateway.output(), /Gateway ready on https:/);
  t.equal((await sendTls(gateway.port, '/a', authority.ca)).status, 200);
  gateway.child.kill('SIGHUP');
  await gateway.until(/the new certificate is in use[\s\S]*the new certificate is in use/);
});
