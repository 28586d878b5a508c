/** The process: how it starts, how it refuses to, what operators see, how it takes an edited file into use. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { type Started, start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { windowWithRoom } from '#test/support/spend.ts';

async function environment(more: Record<string, string> = {}): Promise<Record<string, string>> {
  return {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(await freePort()),
    GATEWAY_ADMIN_PORT: String(await freePort()),
    ...more,
  };
}

async function launch(t: Test, env: Record<string, string>): Promise<Started> {
  const gateway = start(['gateway/main.ts'], env);
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  return gateway;
}

function temporaryFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function eventually<T>(what: string, ask: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (const deadline = performance.now() + 15_000; ; await delay(50)) {
    const value = await ask();
    if (holds(value)) return value;
    if (performance.now() > deadline)
      throw new Error(`not within fifteen seconds: ${what}; last: ${JSON.stringify(value)}`);
  }
}

t.test('ready: one line says so, the port answers, and SIGTERM ends it with 0', async (t) => {
  const upstream = await startUpstream(t);
  const env = await environment({ GATEWAY_UPSTREAM: upstream.origin });
  const gateway = await launch(t, env);
  t.equal(gateway.output().match(/Gateway ready on .*17 policies.*in-process memory/g)?.length, 1);
  t.equal((await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/anything`)).status, 200);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const again =
      signal === 'SIGTERM'
        ? gateway
        : await launch(t, await environment({ GATEWAY_UPSTREAM: upstream.origin }));
    t.equal(await again.stop(signal), 0, signal);
  }
});

t.test('what makes a start impossible ends it with exit 1 and one clear sentence', async (t) => {
  const folder = temporaryFolder(t);
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.teardown(() => taken.close());
  const address = taken.address();
  const port = String(typeof address === 'object' ? address?.port : 0);
  const redis = await startRedis();
  t.teardown(() => redis.close());
  writeFileSync(
    join(folder, 'bad.yaml'),
    policyFile('name: a, route: GET /a, identifier: ip, limit: 0, window: 1m'),
  );

  const cases: readonly (readonly [string, Record<string, string>, RegExp])[] = [
    ['the public port is taken', { GATEWAY_PORT: port }, new RegExp(`port ${port} is taken; .*GATEWAY_PORT`)],
    [
      'the admin port is taken',
      { GATEWAY_ADMIN_PORT: port },
      new RegExp(`port ${port} is taken; .*GATEWAY_ADMIN_PORT`),
    ],
    [
      'workers on a taken port',
      { GATEWAY_PORT: port, GATEWAY_WORKERS: '2', GATEWAY_REDIS_URL: redis.url },
      new RegExp(`port ${port} is taken`),
    ],
    [
      'an address of another machine',
      { GATEWAY_HOST: '192.0.2.1' },
      /does not have the address in GATEWAY_HOST/,
    ],
    [
      'Redis is not there',
      { GATEWAY_REDIS_URL: 'redis://127.0.0.1:1' },
      /GATEWAY_REDIS_URL cannot be reached: .*ECONNREFUSED/,
    ],
    ['workers without Redis', { GATEWAY_WORKERS: '4' }, /GATEWAY_WORKERS above 1 needs GATEWAY_REDIS_URL/],
    [
      'workers, and Redis is not there',
      { GATEWAY_WORKERS: '3', GATEWAY_REDIS_URL: 'redis://127.0.0.1:1' },
      /cannot be reached/,
    ],
    [
      'no policy file',
      { GATEWAY_POLICIES: join(folder, 'none.yaml') },
      /none\.yaml cannot be read \(ENOENT\); set GATEWAY_POLICIES/,
    ],
    [
      'a mistake in it',
      { GATEWAY_POLICIES: join(folder, 'bad.yaml') },
      /bad\.yaml:7:\d+: limit is 0; expected: requests per window/,
    ],
    [
      'several variables are wrong',
      { GATEWAY_UPSTREAM: 'localhost:3000/x', GATEWAY_WORKERS: 'many', GATEWAY_TRUSTED_PROXIES: 'everybody' },
      /GATEWAY_WORKERS is "many"; .*GATEWAY_UPSTREAM: it must be.*GATEWAY_TRUSTED_PROXIES: "everybody" is neither/,
    ],
  ];
  for (const [what, wrong, expected] of cases) {
    const gateway = start(['gateway/main.ts'], await environment(wrong));
    t.teardown(() => gateway.stop('SIGKILL'));
    t.equal(await gateway.ended(), 1, what);
    t.match(gateway.output(), expected, what);
    t.equal(gateway.output().match(/cannot start/g)?.length, 1, `${what}: said once`);
    t.notMatch(gateway.output(), /\n {4}at /, `${what}: no stack`);
  }
});

t.test('the admin listener: health, readiness, metrics, and nothing of it on the public port', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(418).end());
  const redis = await startRedis();
  t.teardown(() => redis.close());
  for (const workers of ['1', '2']) {
    await t.test(`${workers} process(es)`, async (t) => {
      const env = await environment({
        GATEWAY_UPSTREAM: upstream.origin,
        GATEWAY_REDIS_URL: redis.url,
        GATEWAY_WORKERS: workers,
        GATEWAY_ADMIN_TOKEN: 'secret token',
      });
      await launch(t, env);
      const admin = `http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}`;
      t.equal((await fetch(`${admin}/healthz`)).status, 200);
      t.strictSame(await (await fetch(`${admin}/readyz`)).json(), { status: 'ready', store: 'available' });
      t.equal((await fetch(`${admin}/metrics`)).status, 401, 'metrics ask for the token');
      t.equal((await fetch(`${admin}/elsewhere`)).status, 404);
      t.equal(
        (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/metrics`)).status,
        418,
        'the upstream answers there',
      );

      await windowWithRoom(60_000, 3000);
      for (let i = 0; i < 7; i++) {
        await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/api/v1/client/w${workers}/storage`, {
          method: 'POST',
        });
      }
      const headers = { authorization: 'Bearer secret token' };
      const text = await (await fetch(`${admin}/metrics`, { headers })).text();
      const previous = workers === '1' ? 0 : 5;
      t.match(
        text,
        `floodgate_policy_decisions_total{policy="client-v1-storage",decision="allowed"} ${5 - previous}\n`,
      );
      t.match(
        text,
        `floodgate_policy_decisions_total{policy="client-v1-storage",decision="denied"} ${2 + previous}\n`,
      );
      t.match(text, `floodgate_requests_total{outcome="denied"} ${2 + previous}\n`);
      t.notMatch(text, /127\.0\.0\.1|fbk_/, 'never an identity');
    });
  }
});

t.test(
  'an edited policy file is used within seconds; a bad one changes nothing; counters go on',
  async (t) => {
    const upstream = await startUpstream(t);
    const folder = temporaryFolder(t);
    const file = join(folder, 'policies.yaml');
    const limited = (limit: string, more = ''): string =>
      policyFile(`name: a, route: GET /a, identifier: ip, limit: ${limit}, window: 1h${more}`);
    writeFileSync(file, limited('3'));
    const env = await environment({ GATEWAY_UPSTREAM: upstream.origin, GATEWAY_POLICIES: file });
    const gateway = await launch(t, env);
    const status = async (path = '/a'): Promise<number> =>
      (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}${path}`)).status;
    const statuses = async (times: number): Promise<number[]> => {
      const all: number[] = [];
      for (let i = 0; i < times; i++) all.push(await status());
      return all;
    };
    await windowWithRoom(3_600_000, 20_000);
    t.strictSame(await statuses(4), [200, 200, 200, 429]);

    await t.test(
      'a raised limit helps at once, also where the bucket was remembered as exhausted',
      async (t) => {
        writeFileSync(file, limited('5'));
        await gateway.until(/the edited policy file is in use/);
        t.strictSame(await statuses(3), [200, 200, 429], 'the three of before still count');
      },
    );
    await t.test('a mistake: the old table stays, log and metric say so', async (t) => {
      writeFileSync(file, limited('0'));
      await gateway.until(/the edited policy file is refused; the old policies stay/);
      t.match(gateway.output(), /limit is 0; expected/);
      t.equal(await status(), 429);
      const metrics = await (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/metrics`)).text();
      t.match(metrics, 'floodgate_policy_reload_failures_total 1');
    });
    await t.test('SIGHUP looks at once; an unrelated edit resets nothing', async (t) => {
      writeFileSync(
        file,
        `# a comment\n${limited('6')}\n  - { name: b, route: GET /b, identifier: ip, limit: 1, window: 1h }`,
      );
      gateway.child.kill('SIGHUP');
      await eventually(
        'the new row is in use',
        () => status('/b'),
        (value) => value === 429,
      );
      t.strictSame(await statuses(2), [200, 429]);
    });
    await t.test('a file that is gone for a moment changes nothing', async (t) => {
      rmSync(file);
      gateway.child.kill('SIGHUP');
      await gateway.until(/cannot be read \(ENOENT\)/);
      t.equal(await status(), 429);
    });
  },
);

t.test(
  'Redis stopped while running: requests go on within the budget, and the gateway recovers by itself',
  async (t) => {
    const upstream = await startUpstream(t);
    const redis = await startRedis();
    t.teardown(() => redis.close());
    const folder = temporaryFolder(t);
    const file = join(folder, 'policies.yaml');
    writeFileSync(
      file,
      policyFile(
        'name: local, route: GET /local, identifier: ip, limit: 5, window: 1h',
        'name: deny, route: GET /api/v1/client/x/deny, identifier: ip, limit: 5, window: 1h, onStoreFailure: deny',
        'name: allow, route: GET /allow, identifier: ip, limit: 5, window: 1h, onStoreFailure: allow',
      ),
    );
    const env = await environment({
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_POLICIES: file,
    });
    await launch(t, env);
    const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${env.GATEWAY_PORT}${path}`);
    const readiness = async (): Promise<{ store: string }> =>
      (await (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/readyz`)).json()) as { store: string };
    await windowWithRoom(3_600_000, 30_000);
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
    t.ok(Math.max(...slow) < 1000, 'nobody waits for a store that is gone', { slow });
    const denied = await get('/api/v1/client/x/deny');
    t.equal(denied.status, 503);
    t.equal(denied.headers.get('retry-after'), '1');
    t.equal(denied.headers.get('access-control-allow-origin'), '*');
    t.match(await denied.json(), { code: 'gateway_store_unavailable', message: String, details: {} });
    const local = [];
    for (let i = 0; i < 8; i++) local.push((await get('/local')).status);
    t.ok(local.includes(429), 'the local counters hold the limit', { local });

    await redis.restart();
    await eventually('recovered', readiness, ({ store }) => store === 'available');
    t.equal((await get('/api/v1/client/x/deny')).status, 200);
    t.strictSame(
      await Promise.all([get('/local'), get('/local')]).then((replies) =>
        replies.map(({ status }) => status),
      ),
      [200, 200],
      'what was counted here during the outage does not outlive it',
    );
  },
);

t.test('a worker that dies is replaced, and the port never stops answering for long', async (t) => {
  const upstream = await startUpstream(t);
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
  });
  const gateway = await launch(t, env);
  const children = async (): Promise<number[]> => {
    const { readFileSync } = await import('node:fs');
    const text = readFileSync(`/proc/${gateway.child.pid}/task/${gateway.child.pid}/children`, 'utf8');
    return text.trim().split(' ').filter(Boolean).map(Number);
  };
  const before = await children();
  t.equal(before.length, 2);
  process.kill(before[0] ?? 0, 'SIGKILL');
  await gateway.until(/a worker ended; another one takes its place/);
  await eventually('two again', children, (now) => now.length === 2 && !now.includes(before[0] ?? 0));
  await eventually(
    'all answer',
    () =>
      fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/x`).then(
        ({ status }) => status,
        () => 0,
      ),
    (status) => status === 200,
  );
  t.equal(await gateway.stop(), 0, 'and all end together');
});
