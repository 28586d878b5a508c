/**
 * The edge table, row by row, against real processes: every row admits exactly its limit under parallel
 * load, whatever the store and however many gateways share it, and then answers the gateway's own 429.
 */
import t, { type Test } from 'tap';
import { Agent, request } from 'undici';
import { EDGE_TABLE, type EdgeRow, examplePath } from '#test/support/edge-table.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { windowWithRoom } from '#test/support/spend.ts';

const agent = new Agent({ connections: 16, pipelining: 1 });
t.teardown(() => agent.destroy());

interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

async function send(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<Reply> {
  const reply = await request(`http://127.0.0.1:${port}${path}`, {
    method,
    headers,
    body: method === 'GET' ? null : '{}',
    dispatcher: agent,
  });
  return { status: reply.statusCode, headers: reply.headers, body: await reply.body.text() };
}

let caller = 0;
/** A client nobody has seen: an address of its own (the tests are a trusted proxy) and, where a row counts keys, a key. */
function newCaller(row: EdgeRow): Record<string, string> {
  caller++;
  const headers = {
    'x-forwarded-for': `198.51.${caller >> 8}.${caller & 255}`,
    'content-type': 'application/json',
  };
  return row.identifier === 'api-key' ? { ...headers, 'x-api-key': `fbk_caller_${caller}` } : headers;
}

async function startGateway(t: Test, upstream: string, env: Record<string, string>): Promise<number> {
  const port = await freePort();
  const gateway = start(['gateway/main.ts'], {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_ADMIN_PORT: String(await freePort()),
    GATEWAY_UPSTREAM: upstream,
    GATEWAY_TRUSTED_PROXIES: 'loopback',
    // A test machine may be slow for a moment; whether a check is in time is another test's subject.
    GATEWAY_STORE_TIMEOUT_MS: '5000',
    ...env,
  });
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  return port;
}

/** Twice the limit and some more, all at once, spread over the gateways. */
async function admitsExactly(t: Test, row: EdgeRow, ports: readonly number[]): Promise<void> {
  const headers = newCaller(row);
  const method = row.methods.at(-1) ?? 'GET';
  const path = examplePath(row);
  await windowWithRoom(row.windowSeconds * 1000, 20_000);
  const asked = row.limit * 2 + 7;
  const replies = await Promise.all(
    Array.from({ length: asked }, (_, i) => send(ports[i % ports.length] ?? 0, method, path, headers)),
  );
  const admitted = replies.filter(({ status }) => status === 200);
  const denied = replies.filter(({ status }) => status === 429);
  t.equal(admitted.length, row.limit, `${asked} asked, the limit is ${row.limit}`);
  t.equal(denied.length, asked - row.limit, 'all others got 429');
  t.equal(
    new Set(admitted.map(({ headers }) => headers['x-ratelimit-remaining'])).size,
    row.limit,
    'each was told another remainder',
  );
  for (const { headers, body } of denied) {
    const retryAfter = Number(headers['retry-after']);
    if (
      headers['x-gateway-ratelimited'] === undefined ||
      !(retryAfter >= 1 && retryAfter <= row.windowSeconds) ||
      body.includes('too_many_requests') ||
      typeof JSON.parse(body).message !== 'string'
    ) {
      t.fail('a 429 without its marks', { headers, body });
    }
  }
}

function everyRow(t: Test, ports: readonly number[], afterRow = async (): Promise<void> => {}): void {
  t.equal(EDGE_TABLE.length, 17);
  for (const row of EDGE_TABLE) {
    t.test(`${row.methods.join()} ${row.path}: exactly ${row.limit}`, async (t) => {
      await admitsExactly(t, row, ports);
      await afterRow();
    });
  }
}

t.test('in-process memory, one gateway', async (t) => {
  const upstream = await startUpstream(t);
  everyRow(t, [await startGateway(t, upstream.origin, {})]);
});

t.test('Redis, one gateway', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const upstream = await startUpstream(t);
  everyRow(t, [await startGateway(t, upstream.origin, { GATEWAY_REDIS_URL: redis.url })]);
});

t.test('one Redis shared by four gateways', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const upstream = await startUpstream(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const ports = await Promise.all(Array.from({ length: 4 }, () => startGateway(t, upstream.origin, env)));
  // Those of a row have gone when its window ends.
  const kept = new Set<string>();
  everyRow(t, ports, async () => {
    for (const key of await redis.client.keys('*')) kept.add(key);
  });
  t.test('no address and no key reaches the store', async (t) => {
    const keys = [...kept];
    t.ok(keys.length > EDGE_TABLE.length, `${keys.length} keys`);
    for (const key of keys) t.notMatch(key, /198\.51|fbk_/);
    t.equal(
      new Set(keys.filter((key) => key.includes('management')).map((key) => key.split('}')[0]?.length)).size,
      1,
      'digests have one length',
    );
  });
});

t.test('one Redis, one port, four worker processes', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const upstream = await startUpstream(t);
  everyRow(t, [
    await startGateway(t, upstream.origin, { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '4' }),
  ]);
});

t.test('what is never limited, and what counts together', async (t) => {
  const upstream = await startUpstream(t);
  const port = await startGateway(t, upstream.origin, {});
  const statuses = async (times: number, method: string, path: string, headers: Record<string, string>) => {
    const replies = await Promise.all(Array.from({ length: times }, () => send(port, method, path, headers)));
    return new Set(replies.map(({ status }) => status));
  };
  const anonymous = { 'x-forwarded-for': '203.0.113.9' };

  t.test('OPTIONS, health and og pass without end', async (t) => {
    for (const row of EDGE_TABLE) {
      t.strictSame(
        await statuses(row.limit + 5, 'OPTIONS', examplePath(row), newCaller(row)),
        new Set([200]),
        row.path,
      );
    }
    t.strictSame(await statuses(150, 'GET', '/api/v2/health', anonymous), new Set([200]));
    t.strictSame(await statuses(150, 'GET', '/api/v1/client/og', anonymous), new Set([200]));
  });

  t.test('management calls of a session, without a key, pass uncounted', async (t) => {
    const session = { ...anonymous, cookie: 'next-auth.session-token=abc' };
    for (const row of EDGE_TABLE.filter(({ identifier }) => identifier === 'api-key')) {
      const method = row.methods.at(-1) ?? 'GET';
      t.strictSame(
        await statuses(row.limit + 5, method, examplePath(row), session),
        new Set([200]),
        row.path,
      );
      t.strictSame(
        await statuses(3, method, examplePath(row), { ...session, 'x-api-key': '  ' }),
        new Set([200]),
        'a blank key is none',
      );
    }
  });

  t.test('every spelling of a covered route counts in the same bucket', async (t) => {
    const spellings = [
      '/api/v1/management/storage',
      '/api/v1/management/storage?x=1',
      '/api/v1/management/storage/',
      '//api/v1//management/storage',
      '/api/v1/./management/storage',
      '/api/v1/x/../management/storage',
      '/api/v1/m%61nagement/stor%61ge',
      '/api/v1/management;a=b/storage',
      '/api/v1/%2e/management/storage',
    ];
    await windowWithRoom(60_000, 15_000);
    const key = { 'x-forwarded-for': '203.0.113.10', 'x-api-key': 'fbk_spelled' };
    const bearer = { 'x-forwarded-for': '203.0.113.10', authorization: 'Bearer fbk_spelled' };
    const replies: Reply[] = [];
    for (const [i, path] of spellings.entries())
      replies.push(await send(port, 'POST', path, i % 2 === 0 ? key : bearer));
    t.strictSame(
      replies.map(({ status }) => status),
      [200, 200, 200, 200, 200, 429, 429, 429, 429],
      'five in all, however they are spelled',
    );
    t.match(replies[5]?.headers['x-gateway-ratelimited'], 'true');
  });

  t.test('two different keys in one request are refused', async (t) => {
    const reply = await send(port, 'GET', '/api/v1/management/me', {
      'x-api-key': 'fbk_a',
      authorization: 'Bearer fbk_b',
    });
    t.equal(reply.status, 400);
    t.match(JSON.parse(reply.body), { message: /two different API keys/, details: {} });
  });
});

t.test('random keys that never work share one limit of their address', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    const known = req.headers['x-api-key'] === 'fbk_real';
    res.writeHead(known ? 200 : req.url?.includes('nowhere') ? 404 : 401).end();
  });
  for (const store of ['memory', 'Redis']) {
    await t.test(store, async (t) => {
      const env: Record<string, string> = { GATEWAY_IDENTITY_SECRET: 'a configured secret' };
      const redis = store === 'Redis' ? await startRedis() : null;
      if (redis !== null) {
        t.teardown(() => redis.close());
        env.GATEWAY_REDIS_URL = redis.url;
      }
      const port = await startGateway(t, upstream.origin, env);
      await windowWithRoom(60_000, 20_000);
      const from = { 'x-forwarded-for': '203.0.113.77' };
      const real = { ...from, 'x-api-key': 'fbk_real' };
      t.equal((await send(port, 'GET', '/api/v1/management/me', real)).status, 200);

      const flood = await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          send(port, 'GET', i % 2 === 0 ? '/api/v1/management/me' : '/api/v1/management/nowhere', {
            ...from,
            'x-api-key': `fbk_invented_${i}`,
          }),
        ),
      );
      const reached = flood.filter(({ status }) => status !== 429).length;
      t.equal(
        reached,
        79,
        'one limit for all of them, less what is kept, and less one that the real key took',
      );
      t.equal(
        (await send(port, 'GET', '/api/v1/management/me', real)).status,
        200,
        'the key that worked is not touched',
      );
    });
  }
});
