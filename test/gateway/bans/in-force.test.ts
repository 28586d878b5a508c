/** Tests that a change by an operator is in force where it was asked before the call returns, and soon elsewhere. */
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW } from '#test/support/window.ts';

const ME = { subject: '127.0.0.1', kind: 'address' };

t.test('a reset, a ban, an unban and a shadow mode are in force before the command returns', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const options = {
    upstream: upstream.origin,
    policies: policyFile(`name: one, route: GET /x, identifier: ip, limit: 1, window: ${LONG_WINDOW}`),
    env: { GATEWAY_REDIS_URL: redis.url },
  };
  const asked = await startTestGateway(t, options);
  const other = await startTestGateway(t, options);
  const admin = await startTestAdmin(t, asked);
  const status = async ({ origin }: { readonly origin: string }): Promise<number> => {
    const response = await fetch(`${origin}/x`);
    await response.arrayBuffer();
    return response.status;
  };
  const command = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${admin}/api${path}`, { method, headers, body: JSON.stringify(body) });
    t.equal(response.status, 200, await response.text());
  };
  /** Lets a gateway remember that the counter is exhausted. */
  const exhaust = async (gateway: typeof asked): Promise<void> => {
    await until(async () => (await status(gateway)) === 429);
    t.equal(await status(gateway), 429);
  };

  for (let i = 0; i < 5; i++) {
    await exhaust(asked);
    await command('POST', '/reset', ME);
    t.equal(await status(asked), 200, 'a reset');
  }
  for (let i = 0; i < 3; i++) {
    await exhaust(asked);
    await exhaust(other);
    await command('POST', '/reset', ME);
    const since = performance.now();
    await until(async () => (await status(other)) === 200, 'the other gateway has forgotten the counter');
    t.comment(`a reset was in force elsewhere after ${Math.round(performance.now() - since)} ms`);
  }
  await exhaust(asked);
  await command('POST', '/shadow', { policy: 'one', seconds: 3600 });
  t.equal(await status(asked), 200, 'a shadow mode');
  await command('POST', '/ban', { ...ME, seconds: 3600 });
  t.equal(await status(asked), 429, 'a ban');
  await until(async () => (await status(other)) === 429);
  await command('POST', '/unban', ME);
  t.equal(await status(asked), 200, 'an unban');
  await until(async () => (await status(other)) === 200);
});
