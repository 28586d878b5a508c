/**
 * Tests costs over real connections: the headers for a client, and the admitted part of a flood with different costs.
 */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';

t.test('requests of different costs share one limit', async (t) => {
  const { origin } = await startTestGateway(t, {
    clock: () => 0,
    policies: policyFile(
      'name: units, route: GET /units, identifier: ip, limit: 10, window: 1m, cost: { header: X-Cost }',
      'name: cheap, route: GET /cheap, identifier: ip, limit: 10, window: 1m, bucket: shared',
      'name: dear, route: GET /dear, identifier: ip, limit: 10, window: 1m, bucket: shared, cost: 4',
      'name: bytes, route: PUT /bytes, identifier: ip, limit: 100, window: 1m, cost: body-bytes',
    ),
  });
  const ask = async (
    path: string,
    headers: Record<string, string> = {},
  ): Promise<[number, string | null]> => {
    const reply = await fetch(origin + path, { headers });
    await reply.arrayBuffer();
    return [reply.status, reply.headers.get('x-ratelimit-remaining')];
  };
  t.strictSame(await ask('/units', { 'x-cost': '4' }), [200, '6']);
  t.strictSame(await ask('/units', { 'x-cost': '7' }), [429, '6'], 'the cost is more than what is left');
  t.strictSame(await ask('/units', { 'x-cost': 'seven' }), [200, '5'], 'an unreadable cost counts as one');
  t.strictSame(await ask('/units', { 'x-cost': '5' }), [200, '0']);
  t.strictSame(await ask('/units'), [429, '0']);
  t.strictSame(await ask('/dear'), [200, '6']);
  t.strictSame(await ask('/cheap'), [200, '5'], 'the same connection has another cost');
  t.strictSame(await ask('/dear'), [200, '1']);
  t.strictSame(await ask('/dear'), [429, '1']);
  t.strictSame(await ask('/cheap'), [200, '0']);
  for (const name of ['cheap', 'dear']) {
    const denied = (await (await fetch(`${origin}/${name}`)).json()) as Record<string, unknown>;
    t.strictSame(denied['violated-policies'], [name], 'the policy whose route matched is named');
  }

  const put = (body: string): Promise<Response> => fetch(`${origin}/bytes`, { method: 'PUT', body });
  const whole = await put('x'.repeat(60));
  t.equal(whole.headers.get('ratelimit-policy'), '"bytes";q=100;qu="content-bytes";w=60');
  t.equal(whole.headers.get('x-ratelimit-remaining'), '40');
  const second = await put('x'.repeat(60));
  t.equal(second.status, 429);
  t.equal(second.headers.get('retry-after'), '60');
  t.match(await second.json(), { message: /policy bytes allows 100 bytes in 60 seconds/ });
  const large = await put('x'.repeat(101));
  t.equal(large.status, 429);
  t.equal(large.headers.get('retry-after'), null, 'no wait would help');
  t.match(await large.json(), {
    code: 'gateway_rate_limited',
    message: /more of policy bytes than can ever be used at once, 100 bytes.*send less/,
  });
});

t.test('a flood of requests of different costs never uses more than the limit', async (t) => {
  const { origin } = await startTestGateway(t, {
    clock: () => 0,
    policies: policyFile(
      'name: units, route: GET /units, identifier: ip, limit: 60, window: 1m, cost: { header: X-Cost }',
    ),
  });
  const costs = Array.from({ length: 60 }, (_, i) => (i % 5) + 1);
  const admitted = await Promise.all(
    costs.map(async (cost) => {
      const reply = await fetch(`${origin}/units`, { headers: { 'x-cost': String(cost) } });
      await reply.arrayBuffer();
      return reply.status === 200 ? cost : 0;
    }),
  );
  const used = admitted.reduce((sum, cost) => sum + cost, 0);
  t.ok(used <= 60 && used > 55, `${used} of 60`);
});

t.test('a cost that is the whole limit uses up a client’s own limit', async (t) => {
  const own =
    'overrides: [{ for: { address: 127.0.0.0/8 }, limit: 4 }, { for: { address: "::1" }, limit: 4 }]';
  const { origin } = await startTestGateway(t, {
    clock: () => 0,
    policies: policyFile(
      `name: units, route: GET /units, identifier: ip, limit: 10, window: 1m, algorithm: sliding-window, cost: { header: X-Cost }, ${own}`,
      `name: bytes, route: PUT /bytes, identifier: ip, limit: 10, window: 1m, cost: body-bytes, ${own}`,
      `name: bucket, route: GET /bucket, identifier: ip, limit: 10, window: 1m, algorithm: token-bucket, ${own}`,
      `name: bursts, route: GET /bursts, identifier: ip, limit: 10, window: 1m, algorithm: token-bucket, burst: 2, ${own}`,
    ),
  });
  const ask = async (path: string, init: RequestInit = {}): Promise<unknown[]> => {
    const { status, headers, body } = await fetch(origin + path, init);
    await body?.cancel();
    return [status, headers.get('x-ratelimit-remaining'), headers.get('ratelimit-policy')];
  };
  const dear = { headers: { 'x-cost': '9' } };
  t.strictSame(await ask('/units', dear), [200, '0', '"units";q=4;w=60'], 'its own limit is used up');
  t.strictSame((await ask('/units'))[0], 429);
  const unannounced = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('x'));
      controller.close();
    },
  });
  t.strictSame(
    await ask('/bytes', { method: 'PUT', body: unannounced, duplex: 'half' }),
    [200, '0', '"bytes";q=4;qu="content-bytes";w=60'],
    'a body of unknown length',
  );
  t.strictSame(await ask('/bucket'), [200, '3', '"bucket";q=4;w=60'], 'the burst is the overridden limit');
  t.strictSame(await ask('/bursts'), [200, '1', '"bursts";q=2;w=30'], 'one burst for all');
});
