/** Addresses of refused clients reach the admin process from every worker, and nothing else. */
import t from 'tap';
import { BEHIND_PROXY } from '#test/support/gateway.ts';
import { startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

t.test(
  'workers send addresses to the admin process, Redis has none, and the log reports the setting',
  async (t) => {
    const redis = await startRedis(t);
    const operator = await startOperator(t, {
      GATEWAY_REDIS_URL: redis.url,
      GATEWAY_WORKERS: '2',
      GATEWAY_SHOW_ADDRESSES: '10m',
      ...BEHIND_PROXY,
    });
    const { ask, gateway } = operator;
    let id = '';
    for (let i = 0; i < 5; i++) {
      const reply = await fetch(`${gateway}/items`, { headers: { 'x-forwarded-for': '203.0.113.77' } });
      await reply.arrayBuffer();
      id = reply.headers.get('x-gateway-decision') ?? id;
    }
    await until(async () => {
      const { code, document } = await ask('why', id);
      return code === 0 && document.address === '203.0.113.77';
    });
    for (const key of await redis.client.keys('*')) {
      const dump = await redis.client.dumpBuffer(key);
      t.notOk(dump?.includes('203.0.113.77'), key);
    }
    const output = operator.process.output();
    t.match(output, /GATEWAY_SHOW_ADDRESSES=10m: operators see the addresses of refused clients/);
    t.notMatch(output, /203\.0\.113/);
  },
);

t.test('the API shows them in all processes, and the log says who did it', async (t) => {
  const redis = await startRedis(t);
  const operator = await startOperator(t, {
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
    ...BEHIND_PROXY,
  });
  const { gateway, admin } = operator;
  const show = async (seconds: number) =>
    (
      await fetch(`${admin}/api/addresses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ seconds }),
      })
    ).json();
  const clients = Array.from({ length: 16 }, (_, i) => `203.0.113.${i}`);
  /** Refuses each client, on connections that go to both processes. @returns the addresses that the gateway shows */
  const shown = async (): Promise<unknown[]> => {
    for (const address of clients) {
      const headers = { 'x-forwarded-for': address, connection: 'close' };
      for (let i = 0; i < 4; i++) await (await fetch(`${gateway}/items`, { headers })).arrayBuffer();
    }
    return Promise.all(
      clients.map(async (subject) => {
        const headers = { 'content-type': 'application/json' };
        const body = JSON.stringify({ subject });
        const reply = await fetch(`${admin}/api/inspect`, { method: 'POST', headers, body });
        return ((await reply.json()) as { address: string | null }).address;
      }),
    );
  };
  t.ok(
    (await shown()).every((address) => address === null),
    'hidden',
  );
  t.match(await show(600), { until: /Z$/ });
  await until(async () => String(await shown()) === String(clients), 'the address of each client');
  t.strictSame(await show(0), { until: null });
  t.ok(
    (await shown()).every((address) => address === null),
    'hidden again',
  );
  t.match(operator.process.output(), /"change":"show addresses","seconds":600,"until":"/);
  t.match(operator.process.output(), /"change":"hide addresses"/);
  t.notMatch(operator.process.output(), /203\.0\.113/);
  const refused = (await show(-1)) as { message: string };
  t.match(refused.message, /seconds/);
});
