/**
 * Checks every limit of the edge table under parallel load, with each store and with several gateways.
 * test/system/exactness does the same with gateway processes.
 */
import t, { type Test } from 'tap';
import { everyRow, newCaller, sender } from '#test/support/edge-rows.ts';
import { EDGE_TABLE, examplePath } from '#test/support/edge-table.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { policiesWithoutEdges } from '#test/support/policies-without-edges.ts';
import { startRedis } from '#test/support/redis.ts';

const send = sender(t);

async function startGateway(t: Test, upstream: string, env: Record<string, string>): Promise<number> {
  const { port } = await startTestGateway(t, { upstream, env: { ...BEHIND_PROXY, ...env } });
  return port;
}

t.test('in-process memory, one gateway', async (t) => {
  const upstream = await startUpstream(t);
  everyRow(t, [await startGateway(t, upstream.origin, {})]);
});

t.test('one Redis shared by four gateways', async (t) => {
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const ports = await Promise.all(Array.from({ length: 4 }, () => startGateway(t, upstream.origin, env)));
  // The keys of a row are gone when its window ends.
  const kept = new Set<string>();
  everyRow(t, ports, async () => {
    for (const key of await redis.client.keys('*')) kept.add(key);
  });
  t.test('the store gets no address and no key', async (t) => {
    const keys = [...kept];
    t.ok(keys.length > EDGE_TABLE.length, `${keys.length} keys`);
    for (const key of keys) t.notMatch(key, /198\.51|fbk_/);
    t.equal(
      new Set(keys.filter((key) => key.includes('management')).map((key) => key.split('}')[0]?.length)).size,
      1,
      'all digests have one length',
    );
  });
});

t.test('routes without a limit are never refused', async (t) => {
  const upstream = await startUpstream(t);
  const port = await startGateway(t, upstream.origin, { GATEWAY_POLICIES: policiesWithoutEdges(t) });
  const statuses = async (times: number, method: string, path: string, headers: Record<string, string>) => {
    const replies = await Promise.all(Array.from({ length: times }, () => send(port, method, path, headers)));
    return new Set(replies.map(({ status }) => status));
  };
  const anonymous = { 'x-forwarded-for': '203.0.113.9' };

  t.test('OPTIONS, health and og are not limited', async (t) => {
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

  t.test('management calls with a session and without a key are not counted', async (t) => {
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
        'a blank key counts as no key',
      );
    }
  });
});

t.test('random keys that never work share one limit of their address', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    const known = req.headers['x-api-key'] === 'fbk_real';
    res.writeHead(known ? 200 : req.url?.includes('nowhere') ? 404 : 401).end();
  });
  for (const store of ['memory', 'Redis']) {
    await t.test(store, async (t) => {
      const env: Record<string, string> = {
        GATEWAY_IDENTITY_SECRET: 'a configured secret',
        GATEWAY_POLICIES: policiesWithoutEdges(t),
      };
      if (store === 'Redis') env.GATEWAY_REDIS_URL = (await startRedis(t)).url;
      const port = await startGateway(t, upstream.origin, env);
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
      t.equal(reached, 99, 'one limit for all invented keys, less the one unit of the real key');
      t.equal(
        (await send(port, 'GET', '/api/v1/management/me', real)).status,
        200,
        'the proven key is not affected',
      );
    });
  }
});
