/** What the library promises beyond its decisions: one store for all, another table while running, an end. */
import { createServer, request } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import express from 'express';
import t from 'tap';
import { createGateway, loadPolicies, PolicyFileError } from '#gateway/library/index.ts';
import { type Owner, policyFile } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { PATIENT_STORE } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';
import { HOSTS, open } from './hosts.ts';

const limited = (limit: number): string =>
  policyFile(`name: all, route: GET /*, identifier: ip, limit: ${limit}, window: 1d`);

async function listen(owner: Owner, server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

t.test('with one Redis, the gateway and every program that has the library share exact limits', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const env = { GATEWAY_REDIS_URL: redis.url, ...PATIENT_STORE };
  const hosts = await Promise.all(
    Object.values(HOSTS).map((start) => start(t, { policies: limited(37), env })),
  );
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const response = await fetch(`${hosts[i % hosts.length]?.origin}/a`);
      await response.text();
      return response.status;
    }),
  );
  t.equal(statuses.filter((status) => status === 200).length, 37);
  t.equal(statuses.filter((status) => status === 429).length, 163);
});

t.test('without its store it does what each policy says', async (t) => {
  const redis = await startRedis();
  const row = 'name: all, route: GET /*, identifier: ip, limit: 5, window: 1d, onStoreFailure: deny';
  const { origin, gateway } = (await HOSTS['node:http']?.(t, {
    policies: policyFile(row),
    env: { GATEWAY_REDIS_URL: redis.url, ...PATIENT_STORE },
  })) ?? { origin: '', gateway: null };
  t.equal((await fetch(`${origin}/a`)).status, 200);
  await redis.close();
  await until(() => gateway?.storeAvailable() === false, 'it is noticed');
  const refused = await fetch(`${origin}/a`);
  t.equal(refused.status, 503);
  t.equal(refused.headers.get('retry-after'), '1');
});

t.test(
  "client routes: the origin policy is the application's, the limit headers are exposed beside its own",
  async (t) => {
    const gateway = await open({
      policies: policyFile('name: client, route: GET /api/v1/client/*, identifier: ip, limit: 9, window: 1d'),
    });
    t.teardown(() => gateway.close());
    const app = express();
    app.use((req, res, next) => {
      if (typeof req.query.exposed === 'string')
        res.setHeader('Access-Control-Expose-Headers', req.query.exposed);
      next();
    });
    app.use(gateway.middleware);
    app.get('/{*path}', (_req, res) => void res.send('hello'));
    const port = await listen(t, createServer(app));
    const exposed = async (target: string): Promise<string | null> => {
      const { headers } = await fetch(`http://127.0.0.1:${port}${target}`);
      t.equal(headers.get('access-control-allow-origin'), null);
      return headers.get('access-control-expose-headers');
    };
    const limits = 'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ratelimit-policy, ratelimit';
    t.equal(await exposed('/api/v1/client/w'), limits);
    t.equal(await exposed('/api/v1/client/w?exposed=X-Total'), `X-Total, ${limits}`);
    t.equal(await exposed('/api/v1/client/w?exposed=*'), '*');
    t.equal(await exposed('/api/v2/client/w'), null);
    t.equal(await exposed('/free'), null);
  },
);

t.test('other policies are taken into use, and counters go on', async (t) => {
  const { origin, gateway } = (await HOSTS.Express?.(t, { policies: limited(2) })) ?? {
    origin: '',
    gateway: null,
  };
  const status = async (): Promise<number> => (await fetch(`${origin}/a`)).status;
  t.strictSame([await status(), await status(), await status()], [200, 200, 429]);
  gateway?.use(loadPolicies(limited(3)));
  t.strictSame([await status(), await status()], [200, 429]);
});

t.test('mounted on a path in Express, the whole path is matched and the router keeps its part', async (t) => {
  const gateway = await open({
    policies: policyFile('name: api, route: GET /api/items, identifier: ip, limit: 1, window: 1d'),
  });
  t.teardown(() => gateway.close());
  const app = express();
  const router = express.Router();
  router.use(gateway.middleware);
  router.get('/items', (req, res) => void res.json({ url: req.url, originalUrl: req.originalUrl }));
  app.use('/api', router);
  const port = await listen(t, createServer(app));
  const first = await fetch(`http://127.0.0.1:${port}/api/items?x=1`);
  t.strictSame(await first.json(), { url: '/items?x=1', originalUrl: '/api/items?x=1' });
  t.equal((await fetch(`http://127.0.0.1:${port}/api/items`)).status, 429);
});

t.test('HTTP/2 requests of the compatibility API', async (t) => {
  const gateway = await open({ policies: limited(1) });
  t.teardown(() => gateway.close());
  const server = createHttp2Server(async (req, res) => {
    const [one, two] = [req, res] as unknown as Parameters<typeof gateway.limit>;
    if (await gateway.limit(one, two)) res.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.teardown(() => {
    client.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  const ask = (): Promise<{ status: unknown; body: string }> =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ':path': '/a' });
      let status: unknown;
      let body = '';
      stream.on('response', (headers) => {
        status = headers[':status'];
      });
      stream.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      stream.on('end', () => resolve({ status, body }));
      stream.on('error', reject);
    });
  t.strictSame(await ask(), { status: 200, body: 'ok' });
  t.match(await ask(), { status: 429, body: /gateway_rate_limited/ });
});

t.test('the application hears of the canonical path, and only of what is admitted', async (t) => {
  const heard: string[] = [];
  const gateway = await open({ policies: limited(10) });
  t.teardown(() => gateway.close());
  const server = createServer(async (req, res) => {
    if (!(await gateway.limit(req, res))) return;
    heard.push(req.url ?? '');
    res.end();
  });
  const port = await listen(t, server);
  for (const target of ['/a/../b//c/?q=%2e', '/%2561', '/a%2Fb', '/%41'])
    await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`).ended();
  await sendRaw(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n').ended();
  t.strictSame(heard, ['/b/c/?q=%2e', '/A', '*']);
});

t.test('a client that leaves gives back what it held in flight', async (t) => {
  const policies = policyFile('name: slow, route: GET /*, identifier: ip, concurrency: 1');
  const gateway = await open({ policies });
  t.teardown(() => gateway.close());
  let arrived = 0;
  const server = createServer(async (req, res) => {
    if (!(await gateway.limit(req, res))) return;
    arrived++;
    if (req.url === '/quick') res.end();
  });
  const port = await listen(t, server);
  const hanging = request({ port, host: '127.0.0.1', path: '/hangs' });
  hanging.on('error', () => undefined);
  hanging.end();
  await until(() => arrived === 1, 'it is in flight');
  t.equal((await fetch(`http://127.0.0.1:${port}/quick`)).status, 429);
  hanging.destroy();
  const ask = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/quick`)).status;
  await until(async () => (await ask()) === 200, 'the place is free again');
});

t.test('mistakes are told as the gateway tells them', async (t) => {
  t.throws(() => loadPolicies('version: 2\n', 'mine.yaml'), PolicyFileError);
  await t.rejects(
    createGateway({
      policies: loadPolicies(limited(1)),
      settings: { GATEWAY_REDIS_URL: 'nonsense', GATEWAY_TRUSTED_PROXIES: 'everybody', GATEWAY_PORT: 'x' },
    }),
    { message: /GATEWAY_REDIS_URL[\s\S]*GATEWAY_TRUSTED_PROXIES/ },
  );
  const gateway = await createGateway({ policies: loadPolicies(limited(1)) });
  await gateway.close();
});
