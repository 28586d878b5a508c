/** Tests `floodgate doctor` on a correct set-up, and on one set-up for each mistake that it can find. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Finding } from '#gateway/operate/doctor/findings.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin, type TestAdminOptions } from '#test/support/admin.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { startFrontProxy } from '#test/support/front-proxy.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startOperator } from '#test/support/operator.ts';
import { freePort } from '#test/support/ports.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies:
  - { name: login, route: POST /login, identifier: ip, limit: 5, window: 1m }
`;

interface SetUp {
  readonly env?: Record<string, string>;
  readonly admin?: TestAdminOptions;
  /** Decides which paths the application treats as /login. */
  readonly isLogin?: (path: string) => boolean;
  readonly upstream?: string;
}

interface Standing {
  readonly admin: string;
  readonly port: number;
  readonly file: string;
}

/** Starts a gateway with a correct set-up, apart from the given options. */
async function stand(t: Test, redis: RedisServer | null, setUp: SetUp = {}): Promise<Standing> {
  const { isLogin = (path) => path === '/login' } = setUp;
  const upstream = await startUpstream(t, (req, res) => {
    res.writeHead(isLogin(req.url ?? '') ? 405 : 404).end();
  });
  const file = join(temporaryFolder(t), 'policies.yaml');
  writeFileSync(file, POLICIES);
  const gateway = await startTestGateway(t, {
    upstream: setUp.upstream ?? upstream.origin,
    env: {
      GATEWAY_POLICIES: file,
      ...(redis === null ? {} : { GATEWAY_REDIS_URL: redis.url }),
      ...setUp.env,
    },
  });
  const admin = await startTestAdmin(t, gateway, {
    ...setUp.admin,
    doctor: { openFilesMax: () => 1_000_000, ...setUp.admin?.doctor },
  });
  return { admin, port: gateway.port, file };
}

/** @param authority file of one more to trust: Node reads it when it starts, so that takes a process */
async function ask(
  { admin }: Pick<Standing, 'admin'>,
  args: readonly string[] = [],
  authority?: string,
): Promise<{ code: number; ok: boolean; wrong: Finding[]; all: Finding[] }> {
  const all = ['doctor', '--json', '--gateway', admin, ...args];
  const { code, stdout, stderr } = await (authority === undefined
    ? floodgateCommand(all)
    : floodgate(all, { env: { NODE_EXTRA_CA_CERTS: authority } }));
  if (stdout === '') throw new Error(stderr);
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return { code, ok, wrong: findings.filter((finding) => !finding.ok), all: findings };
}

/** Checks that doctor finds these mistakes and no other. */
async function finds(
  t: Test,
  standing: Pick<Standing, 'admin'>,
  expected: readonly object[],
  args: readonly string[] = [],
): Promise<void> {
  const { wrong } = await ask(standing, args);
  t.match(wrong, expected);
  t.equal(wrong.length, expected.length);
}

/** Why the gateway does not use the file as it is; null: it does. */
async function refusalOf({ admin }: Standing): Promise<string | null> {
  const { refusal } = (await (await fetch(`${admin}/api/policies`)).json()) as { refusal: string | null };
  return refusal;
}

const GOOD_REDIS = ['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction'];

async function redisWith(t: Test, args: readonly string[] = GOOD_REDIS): Promise<RedisServer> {
  return startRedis(t, args);
}

t.test('hosts that no policy names', async (t) => {
  const standing = await stand(t, await redisWith(t), { env: { GATEWAY_TRUSTED_PROXIES: '1' } });
  const { port, file } = standing;
  const host = async (name: string): Promise<void> => {
    await send(port, '/login', { headers: { host: name, 'x-forwarded-for': '192.0.2.1' } });
  };
  const hostsOf = async () => (await ask(standing)).all.filter(({ check }) => check === 'hosts');
  const use = async (text: string): Promise<void> => {
    writeFileSync(file, text);
    await until(async () => {
      const { text: inUse } = (await (await fetch(`${standing.admin}/api/policies`)).json()) as {
        text: string;
      };
      return inUse === text;
    });
  };
  await host('a.example.org');
  t.strictSame(await hostsOf(), [], 'no policy has hosts');
  const named = POLICIES.replace('window: 1m', 'window: 1m, hosts: [shop.example.org, "*.blog.example.org"]');
  await use(named);
  await host('Shop.example.org:8080');
  await host('a.blog.example.org');
  await host('127.0.0.1');
  await host('[::1]:80');
  t.match(await hostsOf(), [{ ok: true, message: /^no request came/ }]);
  await host('new.example.org');
  await host('NEW.example.org.');
  await host('evil..example.org');
  for (let i = 0; i < 12; i++) await host(`${i}.example.org`);
  const first = [...Array(9).keys()].map((i) => `${i}.example.org`);
  t.match(await hostsOf(), [
    {
      ok: false,
      message: `requests came for hosts that no policy names: ${['new.example.org', ...first].join(', ')}`,
      fix: /add a policy without hosts/,
    },
  ]);
  await use(`${named}  - { name: rest, route: "* *", identifier: ip, limit: 5, window: 1m }\n`);
  await host('new.example.org');
  t.match(await hostsOf(), [
    { ok: true, message: /names: new.example.org; policies without hosts count them/ },
  ]);
});

t.test('a correct set-up behind a proxy with TLS has no findings', async (t) => {
  const standing = await stand(t, await redisWith(t), { env: { GATEWAY_TRUSTED_PROXIES: '1' } });
  const authority = createAuthority(t);
  const proxy = await startFrontProxy(
    t,
    standing.port,
    authority.issue('front', 'DNS:localhost,IP:127.0.0.1'),
  );
  const found = await ask(standing, ['--public', `https://127.0.0.1:${proxy}`], authority.ca);
  // The authority of the tests issues for two days.
  t.match(found.wrong, [{ check: 'tls', message: /expires in 1 days/, fix: /renew it/ }]);
  t.strictSame(found.all.map(({ check }) => check).sort(), [
    'clock',
    'open-files',
    'path-spelling',
    'policy-file',
    'public-address',
    'store',
    'tls',
    'trusted-proxies',
    'upstream',
    'versions',
  ]);
  t.match(
    await ask(standing, ['--public', `http://127.0.0.1:${await startFrontProxy(t, standing.port)}`]),
    { code: 0, ok: true, wrong: [] },
    'a plain HTTP address has no TLS findings',
  );
  const stranger = await ask(standing, ['--public', `https://127.0.0.1:${proxy}`]);
  t.match(stranger, { code: 1, ok: false });
  t.match(stranger.wrong, [{ check: 'tls', message: /clients do not trust/, fix: /whole chain/ }]);

  const people = await floodgateCommand(['doctor', '--gateway', standing.admin]);
  t.match(people, {
    code: 1,
    stdout: /^trusted-proxies +wrong +requests come without[\s\S]*\ntrusted-proxies: let the proxy append/m,
  });
});

t.test('finds too few and too many trusted proxies, and says what to set', async (t) => {
  const cases: readonly (readonly [trust: string, message: RegExp, fix: RegExp])[] = [
    ['none', /a proxy that is not trusted/, /set GATEWAY_TRUSTED_PROXIES to the address/],
    ['2', /come without the X-Forwarded-For/, /the number of hops is larger/],
    ['loopback', /a client may name any address/, /the proxies in front only/],
    [
      '0.0.0.0/0, 10.0.0.0/8',
      /networks that contain unrelated hosts: 0\.0\.0\.0\/0;/,
      /your own proxies only/,
    ],
  ];
  for (const [trust, message, fix] of cases) {
    await t.test(trust, async (t) => {
      const redis = await redisWith(t);
      const standing = await stand(t, redis, { env: { GATEWAY_TRUSTED_PROXIES: trust } });
      const proxy = await startFrontProxy(t, standing.port);
      await finds(
        t,
        standing,
        [{ check: 'trusted-proxies', message, fix }],
        ['--public', `http://127.0.0.1:${proxy}`],
      );
    });
  }
  await t.test('1, with two proxies', async (t) => {
    const standing = await stand(t, await redisWith(t), { env: { GATEWAY_TRUSTED_PROXIES: '1' } });
    const outer = await startFrontProxy(t, await startFrontProxy(t, standing.port));
    await finds(
      t,
      standing,
      [{ check: 'trusted-proxies', message: /all clients are counted as one/, fix: /set .* to 2/ }],
      ['--public', `http://127.0.0.1:${outer}`],
    );
  });
});

t.test('finds a Redis that is shared, may evict or has another time, and wrong versions', async (t) => {
  const redis = await redisWith(t, ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']);
  await redis.client.set('session:1', 'x');
  const standing = await stand(t, redis, {
    admin: {
      clock: () => Date.now() + 60_000,
      doctor: { openFilesMax: () => 1024, version: '9.9.9' },
    },
  });
  await finds(t, standing, [
    {
      check: 'versions',
      message: /the gateway is 9\.9\.9, this command is/,
      fix: /the version that the gateway has/,
    },
    { check: 'store', message: /maxmemory-policy is allkeys-lru/, fix: /noeviction/ },
    { check: 'store', message: /Redis is shared: 1 of \d+ sampled keys/, fix: /of its own/ },
    { check: 'clock', message: /the clock of Redis, .* is 60 s behind/, fix: /NTP/ },
    { check: 'open-files', message: /only 1024 files may be open/, fix: /ulimit -n \d+/ },
  ]);
});

t.test('finds keys in another database of the same Redis, and a missing maxmemory', async (t) => {
  const redis = await redisWith(t, []);
  await redis.client.select(3);
  await redis.client.set('a', 'b');
  await finds(t, await stand(t, redis), [
    { check: 'store', message: /no maxmemory/ },
    { check: 'store', message: /keys in 1 other database/ },
  ]);
});

t.test('finds a missing Redis, an old Node, a wrong clock and an unreachable application', async (t) => {
  const standing = await stand(t, null, {
    upstream: `http://127.0.0.1:${await freePort()}`,
    admin: { clock: () => Date.now() - 30_000, doctor: { nodeVersion: '22.3.0' } },
  });
  await finds(t, standing, [
    { check: 'versions', message: /Node\.js 22\.3\.0/, fix: /24\.7 or later/ },
    { check: 'upstream', message: /does not answer the gateway: nothing listens/, fix: /GATEWAY_UPSTREAM/ },
    { check: 'store', message: /memory of one process/, fix: /GATEWAY_REDIS_URL/ },
    { check: 'clock', message: /the gateway's clock is 30 s behind/, fix: /NTP .* restart a gateway/ },
  ]);
});

t.test('finds that Redis is down', async (t) => {
  const redis = await redisWith(t);
  const standing = await stand(t, redis);
  await redis.kill();
  const { code, wrong, all } = await ask(standing);
  t.equal(code, 1);
  const clock = all.find(({ check }) => check === 'clock');
  t.notMatch(clock?.message, /store/, 'nothing is known of its clock');
  t.match(wrong, [{ check: 'store', message: /the store is unavailable: .* nothing listens there/ }]);
  t.equal(wrong.length, 1);
});

t.test('finds that the application treats two spellings of a path alike', async (t) => {
  const standing = await stand(t, await redisWith(t), { isLogin: (path) => path.toLowerCase() === '/login' });
  await finds(t, standing, [
    {
      check: 'path-spelling',
      message: /answers \/LOGIN as \/login, and policy login/,
      fix: /ignoreCase: true/,
    },
  ]);
});

t.test('finds that the application has a limited path with a format behind it, as Rails does', async (t) => {
  const standing = await stand(t, await redisWith(t), { isLogin: (path) => /^\/login(\.json)?$/.test(path) });
  await finds(t, standing, [
    {
      check: 'path-spelling',
      message: 'the application has /login.json too, and policy login counts only /login',
      fix: /a policy with the same bucket.*format: false/,
    },
  ]);
});

t.test('recognizes the probe with two workers, and a Redis user that may not run INFO', async (t) => {
  const redis = await redisWith(t);
  await redis.client.call('ACL', 'SETUSER', 'gateway', 'on', '>secret', '~fg:*', '+@all', '-info', '-scan');
  const { admin } = await startOperator(t, {
    GATEWAY_WORKERS: '2',
    GATEWAY_CONNECTIONS: '16',
    GATEWAY_REDIS_URL: redis.url.replace('redis://', 'redis://gateway:secret@'),
  });
  // A worker that has not reached Redis yet has a salt of its own, and does not know the probe.
  await until(async () => {
    const { store } = (await (await fetch(`${admin}/api/top`)).json()) as { store: { replicas: number } };
    return store.replicas === 2;
  }, 'both workers have reached Redis');
  for (let i = 0; i < 2; i++) {
    const found = await ask({ admin });
    // The program runs on the Node.js of the tests, which may have known holes.
    t.strictSame(
      found.wrong.filter(({ check }) => check !== 'versions'),
      [],
    );
    t.ok(found.all.some(({ check, message }) => check === 'store' && /may not use INFO/.test(message)));
    t.ok(found.all.some(({ check }) => check === 'trusted-proxies'));
  }
});

t.test('finds a Redis Cluster without maxmemory', async (t) => {
  const cluster = await startCluster(t);
  await finds(t, await stand(t, null, { env: { GATEWAY_REDIS_URL: cluster.url } }), [
    { check: 'store', message: /no maxmemory/ },
  ]);
});

t.test('finds that the policy file is not the one in use', async (t) => {
  const texts = new Map([['changed', POLICIES.replace('limit: 5', 'limit: 6')]]);
  const cases: readonly (readonly [string, RegExp])[] = [
    ['changed', /has changed and is not in use yet/],
    ['gone', /cannot be read any more/],
  ];
  for (const [state, message] of cases) {
    const readPolicyFile = (): string => {
      const text = texts.get(state);
      if (text === undefined) throw new Error('ENOENT');
      return text;
    };
    const standing = await stand(t, null, { admin: { doctor: { readPolicyFile } } });
    const { wrong } = await ask(standing);
    t.match(wrong, [{ check: 'policy-file', message }, { check: 'store' }], state);
  }
});

t.test('reports why the running gateway refused the policy file', async (t) => {
  const cases: readonly { edit: (text: string) => string; env?: Record<string, string>; message: RegExp }[] =
    [
      {
        edit: (text) => text.replace('limit: 5', 'limit: 0'),
        message: /is refused and older policies are in use: .*:4:\d+/,
      },
      {
        edit: (text) => text.replace('window: 1m', 'window: 1m, count: failure'),
        env: { GATEWAY_DECISION_PORT: String(await freePort()), ...BEHIND_PROXY },
        message: /is refused .*login has "count: failure".* cannot see on GATEWAY_DECISION_PORT/,
      },
    ];
  for (const { edit, env = {}, message } of cases) {
    const standing = await stand(t, null, { env });
    writeFileSync(standing.file, edit(POLICIES));
    await until(async () => (await refusalOf(standing)) !== null);
    const { wrong } = await ask(standing);
    t.match(
      wrong.find(({ check }) => check === 'policy-file'),
      { message },
    );
    writeFileSync(standing.file, POLICIES);
    await until(async () => (await refusalOf(standing)) === null);
    const mended = await ask(standing);
    t.notOk(mended.wrong.some(({ check }) => check === 'policy-file'));
  }
});

t.test('finds an admin listener without a token on a public address', async (t) => {
  const standing = await stand(t, null, { admin: { isLoopback: false } });
  const { code, wrong } = await ask(standing);
  t.equal(code, 1);
  t.match(wrong, [{ check: 'admin-access', message: /asks for no token/, fix: /set GATEWAY_ADMIN_TOKEN/ }]);
});

t.test('knows the certificate of the gateway itself, and its files', async (t) => {
  const redis = await redisWith(t);
  const { cert, key } = createAuthority(t).issue('own', 'DNS:localhost,IP:127.0.0.1');
  const standing = await stand(t, redis, { env: { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key } });
  const found = async () => (await ask(standing)).wrong.filter(({ check }) => check === 'certificate');
  // The authority of the tests issues for two days.
  t.match(await found(), [{ message: /own\.crt expires in 1 days/, fix: /renew it/ }]);
  rmSync(key);
  t.match(await found(), [
    { message: /cannot start again: .*own\.key cannot be read \(ENOENT\)/, fix: /GATEWAY_TLS_KEY/ },
  ]);
  const good = await stand(t, redis, { admin: { clock: () => Date.now() - 30 * 86_400_000 } });
  t.notOk(
    (await ask(good)).all.some(({ check }) => check === 'certificate'),
    'without TLS there is none',
  );
});

t.test('finds that the public address leads elsewhere or nowhere, or does not speak TLS', async (t) => {
  const standing = await stand(t, await redisWith(t));
  const other = await startUpstream(t);
  const elsewhere = await ask(standing, ['--public', other.origin]);
  t.match(elsewhere.wrong, [{ check: 'public-address', message: /does not lead to this gateway/ }]);
  const nowhere = await ask(standing, ['--public', `http://127.0.0.1:${await freePort()}`]);
  t.match(nowhere.wrong, [{ check: 'public-address', message: /cannot be reached from here: ECONNREFUSED/ }]);
  const noTls = await ask(standing, ['--public', other.origin.replace('http', 'https')]);
  t.match(noTls.wrong, [{ check: 'public-address' }, { check: 'tls', message: /does not speak TLS/ }]);
});

t.test('2: wrong arguments or token; 3: no gateway answers', async (t) => {
  t.match(await floodgateCommand(['doctor', '--public', 'example.org']), {
    code: 2,
    stderr: /write https:\/\/HOST/,
  });
  const standing = await stand(t, null, { admin: { token: 'secret' } });
  t.match(await floodgateCommand(['doctor', '--gateway', standing.admin]), {
    code: 2,
    stderr: /asks for a token/,
  });
  const gone = ['doctor', '--gateway', `http://127.0.0.1:${await freePort()}`];
  t.match(await floodgateCommand(gone), { code: 3, stderr: /no gateway answers/ });
});
