/** `floodgate doctor --formbricks`: a correct set-up, and each mistake that it finds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Finding } from '#gateway/operate/doctor/findings.ts';
import { readPage } from '#test/docs/pages.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { startTraefikRecipe } from '#test/support/formbricks-recipes.ts';
import {
  type Formbricks,
  type FormbricksOptions,
  startFormbricks,
} from '#test/support/formbricks-stand-in.ts';
import { startFrontProxy } from '#test/support/front-proxy.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';

const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');
const EXAMPLE = read('examples/formbricks.yaml');
const CHART = read('config/policies.yaml');
/** An address on which the same port of 127.0.0.1, which clients use, is free. */
const INSIDE = '127.0.0.2';

interface SetUp extends FormbricksOptions {
  readonly policies?: string;
  readonly env?: Record<string, string>;
}

interface Standing {
  readonly formbricks: Formbricks;
  readonly admin: string;
  /** Address of a proxy in front of the gateway. */
  readonly front: string;
}

/** Starts a proxy, a gateway and Formbricks with a correct set-up, apart from the given options. */
async function stand(t: Test, setUp: SetUp = {}): Promise<Standing> {
  const formbricks = await startFormbricks(t, { hopCount: 2, host: INSIDE, ...setUp });
  const redis = await startRedis(t, ['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction']);
  const gateway = await startTestGateway(t, {
    upstream: formbricks,
    policies: setUp.policies ?? EXAMPLE,
    env: { GATEWAY_TRUSTED_PROXIES: '1', GATEWAY_REDIS_URL: redis.url, ...setUp.env },
  });
  const policyText = setUp.policies ?? EXAMPLE;
  const doctor = { openFilesMax: () => 1_000_000, readPolicyFile: () => policyText };
  const admin = await startTestAdmin(t, gateway, { doctor });
  return { formbricks, admin, front: `http://127.0.0.1:${await startFrontProxy(t, gateway.port)}` };
}

async function ask(admin: string, args: readonly string[]) {
  const { code, stdout, stderr } = await floodgateCommand(['doctor', '--json', '--gateway', admin, ...args]);
  if (stdout === '') throw new Error(stderr);
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return { code, ok, all: findings, wrong: findings.filter((finding) => !finding.ok) };
}

const askAll = ({ admin, front, formbricks }: Standing) =>
  ask(admin, ['--public', front, '--formbricks', formbricks.origin]);

t.test('a correct set-up behind another proxy has no findings', async (t) => {
  const standing = await stand(t);
  const found = await askAll(standing);
  t.match(found, { code: 0, ok: true, wrong: [] });
  t.match(
    found.all.filter(({ check }) => /^(?:formbricks|login|hop|key|around)/.test(check)),
    [
      {
        check: 'login-limit',
        message: 'the login is limited: POST /api/auth/sign-in/email by auth-sign-in.1m, auth-sign-in.1h',
      },
      { check: 'hop-count', message: 'Formbricks expects 2 proxies on the way, and there are 2' },
      { check: 'key-routes', message: 'clients do not reach /api/envoy-auth and /api/traefik-auth' },
      { check: 'around-gateway', message: /^http:\/\/127\.0\.0\.1:\d+ does not answer clients$/ },
    ],
  );
  t.match(await askAll(standing), { ok: true }, 'a second run right away gives the same');
  const people = await floodgateCommand([
    'doctor',
    '--gateway',
    standing.admin,
    '--formbricks',
    standing.formbricks.origin,
  ]);
  t.match(people.stdout, /^hop-count +ok +Formbricks expects 2 proxies on the way; with --public/m);
  t.match(people.stdout, /^around-gateway +ok +not checked; give --public/m);
});

t.test('finds wrong hop counts, and gives the right one', async (t) => {
  const cases: readonly (readonly [FormbricksOptions, RegExp, RegExp])[] = [
    [
      { hopCount: 1 },
      /expects 1 proxy on the way, and there are 2: it counts a proxy as the client/,
      /COUNT=2 for/,
    ],
    [
      { hopCount: 3 },
      /expects 3 proxies on the way, and there are 2: it counts all clients as one/,
      /COUNT=2 for/,
    ],
    [{ hopCount: 0 }, /counts all clients as one/, /COUNT=2 for/],
    [
      { isUnlimited: true },
      /limits no password resets/,
      /COUNT=2 for Formbricks; remove RATE_LIMITING_DISABLED/,
    ],
  ];
  for (const [options, message, fix] of cases) {
    await t.test(JSON.stringify(options), async (t) => {
      const { code, wrong } = await askAll(await stand(t, options));
      t.equal(code, 1);
      t.match(wrong, [{ check: 'hop-count', message, fix }]);
      t.equal(wrong.length, 1);
    });
  }
});

t.test('the published table: limits only the older login, and denies no route', async (t) => {
  const { wrong } = await askAll(await stand(t, { policies: CHART }));
  t.match(wrong, [
    {
      check: 'login-limit',
      message: 'no policy limits the login at POST /api/auth/sign-in/email',
      fix: /examples\/formbricks\.yaml/,
    },
    {
      check: 'key-routes',
      message: /^clients reach \/api\/envoy-auth and \/api\/traefik-auth, where/,
      fix: /deny: \[\{ route: "\* \/api\/envoy-auth\/\*" \}, \{ route: "\* \/api\/traefik-auth\/\*" \}\]/,
    },
  ]);
  t.equal(wrong.length, 2);

  const old = await askAll(await stand(t, { policies: CHART, isOld: true }));
  t.match(old.wrong, [{ check: 'hop-count' }], 'releases up to 5.1 do not limit these resets');
  t.equal(old.wrong.length, 1);
});

t.test('Traefik asks the gateway: doctor recognizes it', async (t) => {
  for (const hopCount of [1, 2]) {
    const formbricks = await startFormbricks(t, { hopCount, host: INSIDE });
    const { port, asked } = await startTraefikRecipe(
      t,
      formbricks,
      readPage('docs/in-front-of-formbricks.md'),
    );
    const admin = await startTestAdmin(t, asked, { doctor: { openFilesMax: () => 1_000_000 } });
    const front = `http://127.0.0.1:${port}`;
    const { all, wrong } = await ask(admin, ['--public', front, '--formbricks', formbricks.origin]);
    const store = { check: 'store', message: /memory of one process/ };
    if (hopCount === 1) t.match(wrong, [store]);
    else
      t.match(wrong, [
        store,
        { check: 'hop-count', message: /expects 2 proxies on the way, and there are 1: / },
      ]);
    t.equal(wrong.length, hopCount);
    t.match(
      all.filter(({ check }) => check === 'public-address' || check === 'trusted-proxies'),
      [
        { ok: true, message: `the server at ${front} is a proxy that asks this gateway about requests` },
        { ok: true, message: /clients are counted by their own address/ },
      ],
    );
  }
});

t.test('finds a login limit in shadow mode', async (t) => {
  const policies = EXAMPLE.replace(
    'route: POST /api/auth/sign-in/email',
    'route: POST /api/auth/sign-in/email\n    mode: shadow',
  ).replace(/\ntests:[\s\S]*/, '\n');
  const { wrong } = await askAll(await stand(t, { policies }));
  t.match(wrong, [{ check: 'login-limit' }]);
  t.equal(wrong.length, 1);
});

t.test('finds that the port of Formbricks is open at the public host', async (t) => {
  const open = await askAll(await stand(t, { host: '127.0.0.1' }));
  t.match(open.wrong, [
    { check: 'around-gateway', message: /without the gateway/, fix: /remove ports: of Formbricks/ },
  ]);
  t.equal(open.wrong.length, 1);

  const formbricks = await startFormbricks(t, { host: INSIDE });
  const gateway = await startTestGateway(t, {
    upstream: formbricks,
    policies: EXAMPLE,
    env: { GATEWAY_PORT: String(formbricks.port) },
  });
  const admin = await startTestAdmin(t, gateway);
  const { all } = await ask(admin, ['--public', gateway.origin, '--formbricks', formbricks.origin]);
  t.match(
    all.find(({ check }) => check === 'around-gateway'),
    { ok: true },
    'the gateway itself listens on this port there',
  );
});

t.test('finds that Formbricks is unreachable or is another application', async (t) => {
  const { admin, front } = await stand(t);
  const away = `http://127.0.0.1:${await freePort()}`;
  const { wrong } = await ask(admin, ['--public', front, '--formbricks', away]);
  t.match(wrong, [
    {
      check: 'formbricks',
      message: `${away} cannot be reached from here: ECONNREFUSED`,
      fix: /run doctor where the gateway runs/,
    },
  ]);
  t.equal(wrong.length, 1, 'the other checks need only the gateway');

  t.match((await ask(admin, ['--public', front, '--formbricks', admin])).wrong, [
    { check: 'login-limit', message: /has no login at/, fix: /--formbricks/ },
    { check: 'hop-count' },
    { check: 'around-gateway' },
  ]);
  t.match(await floodgateCommand(['doctor', '--gateway', admin, '--formbricks', 'formbricks']), {
    code: 2,
    stderr: /--formbricks: formbricks is not a URL; write http:\/\/HOST:PORT/,
  });
});
