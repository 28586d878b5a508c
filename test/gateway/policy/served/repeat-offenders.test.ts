/** `ban` of a policy, while the store is away or silent. Who is banned, and for how long, is in test/policies/ban.yaml. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test('a denial by the share of one gateway, while the store is away, bans nobody', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const policies = policyFile(
    'name: all, route: "GET /all", identifier: ip, limit: 100, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
    'name: few, route: "GET /few", identifier: ip, limit: 1, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
  );
  const env = { ...BEHIND_PROXY, GATEWAY_REDIS_URL: redis.url };
  const start = () => startTestGateway(t, { policies, env });
  const [{ gateway, port, sample }] = [await start(), await start()];
  const isStoreAway = () => sample('floodgate_store_unavailable') === 1;
  const codeOf = async (path: string, from: string): Promise<string> =>
    JSON.parse((await send(port, path, { headers: { 'x-forwarded-for': from } })).body.toString()).code ??
    'passed';
  await until(() => gateway.report(false).replicas === 2);
  await redis.kill();
  await until(isStoreAway);
  const codes: string[] = [];
  for (let i = 0; i < 70; i++) codes.push(await codeOf('/all', '192.0.2.1'));
  t.equal(codes.filter((code) => code === 'passed').length, 50, 'half of the limit is admitted');
  await redis.restart();
  await until(() => !isStoreAway());
  await until(async () => {
    await codeOf('/few', '192.0.2.2');
    return (await codeOf('/other', '192.0.2.2')) === 'gateway_banned';
  });
  t.equal(await codeOf('/all', '192.0.2.1'), 'passed', 'the client has half of its limit left');
});

t.test('a client that leaves while the store is asked about its key holds nothing', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const policies = policyFile(
    'name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 1, within: 1h, for: 1h }',
    'name: keys, route: "GET /keys", identifier: api-key, limit: 10, window: 366d',
    'name: accounts, route: "POST /login", identifier: { body: email }, limit: 10, window: 366d',
  );
  const env = { GATEWAY_REDIS_URL: redis.url };
  const start = () => startTestGateway(t, { policies, env });
  const [one, two] = [await start(), await start()];
  const held = (bound: string) => two.sample('floodgate_held', { bound });
  await send(one.port, '/keys', { headers: { 'x-api-key': 'customer' } });
  for (let i = 0; i < 3; i++) await send(one.port, '/all');
  await until(async () => (await send(two.port, '/other')).body.includes('gateway_banned'));
  const before = held('waiting');
  redis.freeze();
  const { socket } = sendRaw(
    two.port,
    'POST /login HTTP/1.1\r\nHost: a\r\nX-Api-Key: customer\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  );
  const idle = held('connections');
  await until(() => held('connections') !== idle);
  // When the server answers a later request, it has read this one.
  await until(async () => (await send(two.port, '/other')).body.includes('gateway_banned'));
  socket.destroy();
  await until(() => held('connections') === idle);
  redis.thaw();
  await until(
    async () => (await send(two.port, '/other', { headers: { 'x-api-key': 'customer' } })).status === 200,
  );
  t.equal(held('waiting'), before);
  t.equal(two.sample('floodgate_requests_total', { outcome: 'undecided' }), 1, 'counted as undecided');
});
