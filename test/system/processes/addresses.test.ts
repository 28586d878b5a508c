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
