/** Tests the library's own features: a shared store, replacing policies, and closing. */
import { createServer, request, type ServerResponse } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import express from 'express';
import t from 'tap';
import { createGateway, loadPolicies, PolicyFileError } from '#gateway/library/index.ts';
import { policyFile } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { patiently } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';
import { HOSTS, open } from './hosts.ts';

const limited = (limit: number): string =>
  policyFile(`name: all, route: GET /*, identifier: ip, limit: ${limit}, window: 366d`);

t.test('the gateway and all programs with the library share exact limits through one Redis', async (t) => {
  const redis = await startRedis(t);
  const env = patiently({ GATEWAY_REDIS_URL: redis.url });
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

t.test('the application reads the marks of a request, and no forged ones', async (t) => {
  const policies = policyFile('name: few, route: GET /*, identifier: ip, limit: 1, window: 366d, mode: mark');
  for (const [name, start] of Object.entries(HOSTS)) {
    const { origin } = await start(t, { policies });
    const ask = async () => {
      const response = await fetch(`${origin}/a`, { headers: { 'x-gateway-over': 'forged' } });
      return ((await response.json()) as { over: unknown }).over;
    };
    t.strictSame(
      [await ask(), await ask()],
      [
        [null, []],
        ['few', ['few']],
      ],
      name,
    );
  }
});

t.test('without its store each policy decides by its onStoreFailure', async (t) => {
  const redis = await startRedis(t);
  const row = 'name: all, route: GET /*, identifier: ip, limit: 5, window: 366d, onStoreFailure: deny';
  const { origin, gateway } = (await HOSTS['node:http']?.(t, {
    policies: policyFile(row),
    env: patiently({ GATEWAY_REDIS_URL: redis.url }),
  })) ?? { origin: '', gateway: null };
  t.equal((await fetch(`${origin}/a`)).status, 200);
  await redis.kill();
  await until(() => gateway?.storeAvailable() === false, 'it is noticed');
  const refused = await fetch(`${origin}/a`);
  t.equal(refused.status, 503);
  t.equal(refused.headers.get('retry-after'), '1');
});

t.test(
  'client routes: the application sets the CORS policy, and the library adds the limit headers',
  async (t) => {
    const gateway = await open({
      policies: policyFile(
        'name: client, route: GET /api/v1/client/*, identifier: ip, limit: 9, window: 366d',
      ),
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

t.test('uses reloaded policies and keeps the counters', async (t) => {
  const { origin, gateway } = (await HOSTS.Express?.(t, { policies: limited(2) })) ?? {
    origin: '',
    gateway: null,
  };
  const status = async (): Promise<number> => (await fetch(`${origin}/a`)).status;
  t.strictSame([await status(), await status(), await status()], [200, 200, 429]);
  gateway?.use(loadPolicies(limited(3)));
  t.strictSame([await status(), await status()], [200, 429]);
});

t.test('mounted on a path in Express, matches the whole path and leaves the router its part', async (t) => {
  const gateway = await open({
    policies: policyFile('name: api, route: GET /api/items, identifier: ip, limit: 1, window: 366d'),
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

t.test('limits HTTP/2 requests of the compatibility API', async (t) => {
  const gateway = await open({ policies: limited(1) });
  t.teardown(() => gateway.close());
  const server = createHttp2Server(async (req, res) => {
    const [one, two] = [req, res] as unknown as Parameters<typeof gateway.limit>;
    if (await gateway.limit(one, two)) res.end('ok');
  });
  const client = connectHttp2(`http://127.0.0.1:${await listen(t, server)}`);
  t.teardown(() => client.destroy());
  const ask = (headers = {}): Promise<{ status: unknown; body: string }> =>
    new Promise((resolve, reject) => {
      const stream = client.request({ ':path': '/a', ...headers });
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
  const different = await ask({ ':authority': 'a.test', host: 'b.test' });
  t.match(different, { status: 400, body: /more than one Host/ });
  t.strictSame(await ask({ ':authority': 'a.test', host: 'A.test:80' }), { status: 200, body: 'ok' });
  t.match(await ask(), { status: 429, body: /gateway_rate_limited/ });
});

t.test('the application gets the path without dot segments, and only admitted requests', async (t) => {
  const heard: string[] = [];
  const gateway = await open({ policies: limited(10) });
  t.teardown(() => gateway.close());
  const server = createServer(async (req, res) => {
    if (!(await gateway.limit(req, res))) return;
    heard.push(req.url ?? '');
    res.end();
  });
  const port = await listen(t, server);
  for (const target of ['/a/../b//c/?q=%2e', '/a%00b', '/a%2Fb', '/%41/'])
    await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`).ended();
  await sendRaw(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n').ended();
  t.strictSame(heard, ['/b//c/?q=%2e', '/a%2Fb', '/%41/', '*']);
});

/** Clients come in sequence. Each leaves when its request has reached the application. @returns their number */
async function comeAndLeave(port: number, path: string, arrived: ServerResponse[]): Promise<number> {
  const before = arrived.length;
  for (let i = 0; i < 5; i++) {
    const had = arrived.length;
    let status = 0;
    const leaving = request({ port, host: '127.0.0.1', path, agent: false });
    leaving
      .on('error', () => undefined)
      .on('response', (reply) => {
        status = reply.statusCode ?? 0;
        reply.resume();
      });
    leaving.end();
    await until(() => arrived.length > had || status === 429, 'it has arrived, or is refused');
    leaving.destroy();
    if (arrived.length > had) await until(() => arrived.at(-1)?.closed === true, 'its client is gone');
  }
  return arrived.length - before;
}

t.test(
  'a client that leaves holds its place until the application ends the reply, or for a bounded time',
  async (t) => {
    const policies = policyFile('name: slow, route: GET /*, identifier: ip, concurrency: 2');
    for (const timeoutMs of ['600000', '1000']) {
      const gateway = await open({ policies, env: { GATEWAY_UPSTREAM_TIMEOUT_MS: timeoutMs } });
      t.teardown(() => gateway.close());
      const arrived: ServerResponse[] = [];
      const server = createServer(async (req, res) => {
        if (!(await gateway.limit(req, res))) return;
        if (req.url === '/quick') res.end();
        else arrived.push(res);
      });
      const port = await listen(t, server);
      const quick = async (): Promise<boolean> =>
        (await fetch(`http://127.0.0.1:${port}/quick`)).headers.get('ratelimit')?.includes('r=1') === true;
      if (timeoutMs === '600000') {
        t.equal(await comeAndLeave(port, '/hangs', arrived), 2);
        for (const res of arrived) res.end('nobody reads this');
      } else await comeAndLeave(port, '/hangs', arrived);
      let isFree = false;
      while (!isFree) isFree = await quick();
      t.pass(`the place is free after ${timeoutMs} ms`);
    }
  },
);

t.test('counts the request of a client that leaves', async (t) => {
  for (const count of ['failure', 'success']) {
    const policies = policyFile(
      `name: some, route: GET /*, identifier: ip, limit: 2, window: 366d, count: ${count}`,
    );
    const gateway = await open({ policies });
    t.teardown(() => gateway.close());
    const arrived: ServerResponse[] = [];
    const server = createServer(async (req, res) => {
      if (await gateway.limit(req, res)) arrived.push(res);
    });
    t.equal(await comeAndLeave(await listen(t, server), '/hangs', arrived), 2, count);
  }
});

t.test('reports mistakes as the gateway does', async (t) => {
  t.throws(() => loadPolicies('version: 2\n', 'mine.yaml'), PolicyFileError);
  const login = 'name: login, route: POST /login, identifier: { body: email }, limit: 2, window: 1m';
  const accounts =
    'name: login, route: POST /login, identifier: ip, distinct: { body: email }, limit: 2, window: 1m';
  t.throws(() => loadPolicies(policyFile(accounts)), { message: /login counts a field of bodies/ });
  t.throws(() => loadPolicies(policyFile(login)), {
    message: /login counts a field of bodies, which the library does not read; remove it/,
  });
  const files = 'name: files, route: GET /a, identifier: ip, limit: 2, window: 1m, cost: reply-bytes';
  t.throws(() => loadPolicies(policyFile(files)), { message: /files counts the bytes of replies, which/ });
  await t.rejects(
    createGateway({
      policies: loadPolicies(limited(1)),
      settings: { GATEWAY_REDIS_URL: 'nonsense', GATEWAY_TRUSTED_PROXIES: 'everybody', GATEWAY_PORT: 'x' },
    }),
    { message: /GATEWAY_REDIS_URL[\s\S]*GATEWAY_TRUSTED_PROXIES/ },
  );
  await t.rejects(
    createGateway({ policies: loadPolicies(limited(1)), settings: { GATEWAY_REDIS_CA: 'ca.pem' } }),
    { message: /GATEWAY_REDIS_CA: this variable was removed; write it into GATEWAY_REDIS_URL/ },
  );
  const gateway = await createGateway({ policies: loadPolicies(limited(1)) });
  await gateway.close();
});
