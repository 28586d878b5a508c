/** Tests `floodgate doctor` on a correct set-up, and on one set-up for each mistake that it can find. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
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

interface Mistake {
  readonly title: string;
  readonly env?: Record<string, string>;
  readonly redis?: readonly string[] | null;
  /** Number of the database that has a key of another program. */
  readonly keyIn?: number;
  readonly proxies?: number;
  readonly application?: 'nowhere';
  /** Paths that the application treats as /login. */
  readonly login?: readonly string[];
  readonly public?: 'elsewhere' | 'nowhere' | 'plain';
  readonly clockMs?: number;
  readonly isLoopback?: boolean;
  readonly openFilesMax?: number;
  /** Versions that it reports. */
  readonly doctor?: Readonly<Record<string, string>>;
  readonly policyFile?: 'changed' | 'gone';
  readonly found: readonly { readonly check: string; readonly message: string; readonly fix?: string }[];
}

function reportOf({
  openFilesMax = 1_000_000,
  policyFile,
  doctor,
}: Mistake): TestAdminOptions['doctor'] & object {
  const readPolicyFile = (): string => {
    if (policyFile === 'gone') throw new Error('ENOENT');
    return POLICIES.replace('limit: 5', 'limit: 6');
  };
  return { openFilesMax: () => openFilesMax, ...doctor, ...(policyFile && { readPolicyFile }) };
}

const nowhere = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`;

/** @returns the option --public of the command */
async function publicOf(t: Test, { proxies = 0, public: leadsTo }: Mistake, port: number): Promise<string[]> {
  if (leadsTo === 'nowhere') return ['--public', await nowhere()];
  if (leadsTo !== undefined) {
    const { origin } = await startUpstream(t);
    return ['--public', leadsTo === 'plain' ? origin.replace('http', 'https') : origin];
  }
  let outermost = port;
  for (let i = 0; i < proxies; i++) outermost = await startFrontProxy(t, outermost);
  return proxies === 0 ? [] : ['--public', `http://127.0.0.1:${outermost}`];
}

const MISTAKES: readonly Mistake[] = parse(readFileSync(join(import.meta.dirname, 'doctor.yaml'), 'utf8'));
for (const mistake of MISTAKES)
  t.test(`finds ${mistake.title}`, async (t) => {
    const { redis: args, keyIn, clockMs = 0, isLoopback = true, login, application, env } = mistake;
    const redis = args === null ? null : await redisWith(t, args);
    if (keyIn !== undefined) {
      await redis?.client.select(keyIn);
      await redis?.client.set('session:1', 'x');
    }
    const standing = await stand(t, redis, {
      ...(env && { env }),
      ...(login && { isLogin: (path) => login.includes(path) }),
      ...(application && { upstream: await nowhere() }),
      admin: { clock: () => Date.now() + clockMs, isLoopback, doctor: reportOf(mistake) },
    });
    const { code, wrong } = await ask(standing, await publicOf(t, mistake, standing.port));
    t.equal(code, 1);
    const patterns = mistake.found.map(({ check, message, fix = '.' }) => ({
      ...{ check, message: new RegExp(message), fix: new RegExp(fix) },
    }));
    t.match(wrong, patterns);
    t.equal(wrong.length, patterns.length);
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
  const { wrong } = await ask(await stand(t, null, { env: { GATEWAY_REDIS_URL: cluster.url } }));
  t.match(wrong, [{ check: 'store', message: /no maxmemory/ }]);
  t.equal(wrong.length, 1);
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
  const gone = ['doctor', '--gateway', await nowhere()];
  t.match(await floodgateCommand(gone), { code: 3, stderr: /no gateway answers/ });
});
