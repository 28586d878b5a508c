/** `distinct` on running gateways: what it refuses, tells and stores. What it counts is in test/policies/distinct.yaml. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { insideLongWindow } from '#test/support/window.ts';

const LOGINS = policyFile(
  'name: accounts, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 5, window: 366d',
);

function login(port: number, body: string) {
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': '192.0.2.1' };
  return send(port, '/login', { method: 'POST', headers, body });
}

const withEmail = (email: string): string => JSON.stringify({ email, password: 'x' });

t.test('a denial names the values, and a header that proxies remove or send twice is refused', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: accounts, route: "POST /login", identifier: ip, distinct: { body: email }, limit: 1, window: 366d',
    'name: devices, route: "GET /device", identifier: ip, distinct: { header: X-Device }, limit: 3, window: 366d',
  );
  const { port, gateway } = await startTestGateway(t, { policies, env: BEHIND_PROXY });
  await login(port, withEmail('a'));
  const denied = JSON.parse((await login(port, withEmail('b'))).body.toString());
  t.match(JSON.stringify(denied), /1 different value/);
  t.match(await gateway.findDecision(denied.decision), { policy: 'accounts', used: 1, limit: 1 });
  t.match(await login(port, withEmail('a'.repeat(9000))), { headers: { ratelimit: undefined } });
  const both = await send(port, '/device', { headers: { 'x-device': ['a', 'b'] } });
  t.match(both.body.toString(), /two different values of header\.x-device; send one/);
  const { status } = await send(port, '/device', { headers: { connection: 'x-device', 'x-device': 'e' } });
  t.equal(status, 400);
});

t.test('a flood of values leaves no more in the store than the limit, and no value itself', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const env = { ...BEHIND_PROXY, GATEWAY_REDIS_URL: redis.url };
  const { port } = await startTestGateway(t, { policies: LOGINS, env });
  for (let round = 0; round < 20; round++)
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => login(port, withEmail(`v${round}x${i}@example.org`))),
    );
  const keys = (await redis.client.keys('*:values*')) as string[];
  t.equal(keys.length, 6, 'a counter and five values');
  for (const key of keys) {
    t.match(key, /^fg:\{[\w-]{22}\}:accounts:\d+:values(:[\w-]{22})?$/);
    t.ok(Number(await redis.client.pttl(key)) > 0, 'it expires');
  }
});
