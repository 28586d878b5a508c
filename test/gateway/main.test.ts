/** The process: how it starts, how it refuses to, what operators see, how it takes an edited file into use. */
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { hammer } from '#test/support/hammer.ts';
import { freePort } from '#test/support/ports.ts';
import { type Started, start } from '#test/support/process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { windowWithRoom } from '#test/support/spend.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

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

function childrenOf(pid = 0): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
}

function lives(pid: number): boolean {
  try {
    // A process that has ended stays in the list until its parent, or who adopted it, takes notice.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
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
      'workers without Redis',
      { GATEWAY_WORKERS: '4' },
      /GATEWAY_WORKERS: more than one process needs GATEWAY_REDIS_URL/,
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
      'the admin address is of another machine',
      { GATEWAY_ADMIN_HOST: '192.0.2.1' },
      /does not have the address in GATEWAY_ADMIN_HOST/,
    ],
    ['an address without its zone', { GATEWAY_HOST: 'fe80::1' }, /does not have the address in GATEWAY_HOST/],
    [
      'Redis lacks the database',
      { GATEWAY_REDIS_URL: `${redis.url}/99` },
      /GATEWAY_REDIS_URL refuses this gateway: .*DB index/,
    ],
    ...['redis://', 'redis:6379', `${redis.url}/x`, `${redis.url}?autoResendUnfulfilledCommands=1`].map(
      (url) =>
        [
          `as address of Redis ${url}`,
          { GATEWAY_REDIS_URL: url },
          /GATEWAY_REDIS_URL: it must be an address such as/,
        ] as const,
    ),
    [
      'a password that is not encoded',
      { GATEWAY_REDIS_URL: 'redis://:50%off@127.0.0.1:1' },
      /GATEWAY_REDIS_URL: a % .* must be written as %25$/m,
    ],
    [
      'a password for the upstream',
      { GATEWAY_UPSTREAM: 'http://:pw@127.0.0.1:3000' },
      /GATEWAY_UPSTREAM: it must be an origin/,
    ],
    [
      'a token that no header can carry',
      { GATEWAY_ADMIN_TOKEN: 'Schlüssel' },
      /GATEWAY_ADMIN_TOKEN: it must consist of ASCII characters/,
    ],
    [
      'several variables are wrong',
      { GATEWAY_UPSTREAM: 'localhost:3000/x', GATEWAY_WORKERS: 'many', GATEWAY_TRUSTED_PROXIES: 'everybody' },
      /GATEWAY_WORKERS: "many" is not .*GATEWAY_UPSTREAM: it must be.*GATEWAY_TRUSTED_PROXIES: "everybody" is neither/,
    ],
  ];
  for (const [what, wrong, expected] of cases) {
    const gateway = start(['gateway/main.ts'], await environment(wrong));
    t.teardown(() => gateway.stop('SIGKILL'));
    t.equal(await gateway.ended(), 1, what);
    t.match(gateway.output(), expected, what);
    t.equal(gateway.output().match(/cannot start/g)?.length, 1, `${what}: said once`);
    t.notMatch(gateway.output(), /\n {4}at |autoResend|50%off|:pw@/, `${what}: no stack, no secret`);
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
      [429, 429],
      'what was admitted during the outage is charged to the store afterwards',
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
  const before = childrenOf(gateway.child.pid);
  t.equal(before.length, 2);
  process.kill(before[0] ?? 0, 'SIGKILL');
  await gateway.until(/a worker ended; another one takes its place/);
  await eventually(
    'two again',
    async () => childrenOf(gateway.child.pid),
    (now) => now.length === 2 && !now.includes(before[0] ?? 0),
  );
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

t.test('a supervisor that is killed leaves no worker behind, ready or not', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' };
  const ready = await launch(t, await environment(env));
  const starting = start(['gateway/main.ts'], await environment(env));
  t.teardown(() => starting.stop('SIGKILL'));
  await eventually(
    'a worker begins',
    async () => childrenOf(starting.child.pid).length,
    (n) => n > 0,
  );
  for (const gateway of [ready, starting]) {
    const workers = childrenOf(gateway.child.pid);
    t.ok(workers.length > 0);
    gateway.child.kill('SIGKILL');
    await eventually(
      'all ended',
      async () => workers.filter(lives),
      (left) => left.length === 0,
    );
  }
});

t.test('workers are replaced while the store is away', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const env = await environment({ GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' });
  const gateway = await launch(t, env);
  const readiness = async (): Promise<number> =>
    (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/readyz`)).status;
  await redis.kill();
  for (const worker of childrenOf(gateway.child.pid)) process.kill(worker, 'SIGKILL');
  await gateway.until(/a worker ended[\s\S]*a worker ended/);
  await eventually('ready again', readiness, (status) => status === 200);
  await eventually(
    'both again',
    async () => childrenOf(gateway.child.pid).length,
    (n) => n === 2,
  );
  await redis.restart();
  t.equal(await gateway.stop(), 0);
});

t.test('SIGHUP before it is ready does not end the gateway', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const door = createServer({ pauseOnConnect: true });
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  t.teardown(() => door.close());
  const address = door.address();
  const port = typeof address === 'object' ? address?.port : 0;
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

t.test('a second signal is from somebody who does not want to wait', async (t) => {
  const upstream = await startUpstream(t, () => undefined);
  const redis = await startRedis();
  t.teardown(() => redis.close());
  for (const workers of ['1', '2']) {
    const env = await environment({
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_WORKERS: workers,
    });
    const gateway = await launch(t, env);
    const pids = childrenOf(gateway.child.pid);
    const arrived = once(upstream.server, 'request');
    const client = sendRaw(Number(env.GATEWAY_PORT), 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await arrived;
    gateway.child.kill('SIGTERM');
    await gateway.until(/draining/);
    t.equal(await gateway.stop('SIGTERM'), 1, `${workers} process(es)`);
    await eventually(
      'no worker stays',
      async () => pids.filter(lives),
      (left) => left.length === 0,
    );
    client.socket.destroy();
  }
});

t.test('what is secret stays out of log, metrics and readiness, in an outage too', async (t) => {
  const redis = await startRedis(['--requirepass', 'store-secret']);
  t.teardown(() => redis.close());
  const env = await environment({
    GATEWAY_REDIS_URL: redis.url.replace('//', '//default:store-secret@'),
    GATEWAY_IDENTITY_SECRET: 'identity-secret',
    GATEWAY_ADMIN_TOKEN: 'admin-secret',
    LOG_LEVEL: 'trace',
  });
  const gateway = await launch(t, env);
  const ask = (path: string): Promise<string> =>
    fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}${path}`, {
      headers: { authorization: 'Bearer admin-secret' },
    }).then((reply) => reply.text());
  const covered = (): Promise<unknown> =>
    fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/api/v1/client/x/environment`);
  await covered();
  await redis.kill();
  await eventually(
    'noticed',
    () => covered().then(() => ask('/readyz')),
    (text) => text.includes('unavailable'),
  );
  await redis.restart();
  await eventually(
    'recovered',
    () => ask('/readyz'),
    (text) => text.includes('"available"'),
  );
  await covered();
  const metrics = await ask('/metrics');
  t.match(metrics, /floodgate_store_failures_total/);
  t.equal(await gateway.stop(), 0);
  t.match(gateway.output(), /the store is available again/);
  t.notMatch(gateway.output() + metrics, /-secret/);
});

t.test('where the admin listener can be reached from outside without a token, the log warns', async (t) => {
  const open = await launch(t, await environment({ GATEWAY_ADMIN_HOST: '0.0.0.0' }));
  await open.until(/set GATEWAY_ADMIN_TOKEN/);
  const guarded = await launch(
    t,
    await environment({ GATEWAY_ADMIN_HOST: '0.0.0.0', GATEWAY_ADMIN_TOKEN: 'token' }),
  );
  const inside = await launch(t, await environment({}));
  for (const quiet of [guarded, inside]) t.notMatch(quiet.output(), /GATEWAY_ADMIN_TOKEN/);
});

t.test('the line that says ready can be pasted, with an IPv6 address too', async (t) => {
  const hasIPv6 = Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.address === '::1');
  const [host, shown] = hasIPv6 ? ['::1', '[::1]'] : ['localhost', 'localhost'];
  const gateway = await launch(t, await environment({ GATEWAY_HOST: host, GATEWAY_PORT: '0' }));
  const url = / on (http:\S+),/.exec(gateway.output())?.[1] ?? '';
  t.ok(url.startsWith(`http://${shown}:`), url);
  t.equal((await fetch(`${url}/x`)).status, 502, 'it answers, and has no upstream');
});

t.test(
  'SIGTERM under load, two processes and Redis: every request on an open connection is answered whole',
  async (t) => {
    const upstream = await startUpstream(t, (_req, res) => {
      setTimeout(() => res.end('x'.repeat(1000)), 2);
    });
    const redis = await startRedis();
    t.teardown(() => redis.close());
    const folder = temporaryFolder(t);
    const file = join(folder, 'policies.yaml');
    writeFileSync(file, policyFile('name: a, route: GET /a, identifier: ip, limit: 100, window: 1h'));
    const env = await environment({
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_POLICIES: file,
      GATEWAY_WORKERS: '2',
    });
    const gateway = await launch(t, env);
    const port = Number(env.GATEWAY_PORT);
    const load = [hammer(port, '/free', 16), hammer(port, '/a', 16)];

    // An upload whose second half comes only when the shutdown has begun.
    const upload = sendRaw(
      port,
      'POST /upload HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 200000\r\n\r\n',
    );
    await upload.until(/100 Continue/);
    upload.socket.write('x'.repeat(100_000));
    await eventually(
      'load',
      async () => Math.min(...load.map((one) => one.answered())),
      (n) => n > 300,
    );
    gateway.child.kill('SIGTERM');
    await gateway.until(/(?:"signal":"SIGTERM"[\s\S]*){3}/);
    upload.socket.write('x'.repeat(100_000));
    await upload.until(/HTTP\/1\.1 200 OK\r\n[\s\S]*x{1000}$/);
    t.equal(await gateway.ended(), 0);
    await Promise.all(load.map(({ ended }) => ended));
    for (const { broken } of load) t.strictSame(broken, []);
  },
);
