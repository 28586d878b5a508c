/** Addresses of refused clients: who sees them, for how long, and where they are never written. */
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

const ONE = 'name: one, route: GET /one, identifier: ip, limit: 1, window: 366d';
const ALL = 'name: all, route: GET /all, identifier: everyone, limit: 1, window: 366d';

t.test('drops an address after its time, even if nobody reads it', async (t) => {
  let now = 0;
  const addresses = new RefusedAddresses(60_000, () => now);
  t.teardown(() => addresses.close());
  addresses.note('a', '192.0.2.1');
  now = 59_999;
  t.equal(addresses.find('a'), '192.0.2.1');
  now = 60_000;
  t.equal(addresses.find('a'), null);
  await until(() => addresses.size === 0);
  t.strictSame(addresses.fresh(), [], 'a dropped address is not sent');
});

t.test('keeps a client that is refused again', async (t) => {
  let now = 0;
  const addresses = new RefusedAddresses(60_000, () => now);
  t.teardown(() => addresses.close());
  for (; now <= 120_000; now += 1000) addresses.note('a', '192.0.2.1');
  t.equal(addresses.find('a'), '192.0.2.1');
  addresses.note('a', '192.0.2.2');
  t.equal(addresses.find('a'), '192.0.2.2', 'the address of the latest refusal');
});

t.test('the number of addresses is bounded, and each is sent to another process once', async (t) => {
  const addresses = new RefusedAddresses(60_000, () => 0);
  const other = new RefusedAddresses(60_000, () => 0);
  t.teardown(() => {
    addresses.close();
    other.close();
  });
  for (let i = 0; i < 10_000; i++) addresses.note(String(i), `192.0.2.${i}`);
  t.equal(addresses.size, 4096);
  const fresh = addresses.fresh();
  t.equal(fresh.length, 4096);
  other.take(fresh);
  t.equal(other.find('9999'), '192.0.2.9999');
  t.equal(other.find('0'), null);
  addresses.note('9999', '192.0.2.9999');
  t.strictSame(addresses.fresh(), []);
});

async function start(t: Test, env: Record<string, string>) {
  const gateway = await startTestGateway(t, {
    policies: policyFile(ONE, ALL),
    env: { ...BEHIND_PROXY, ...env },
  });
  const admin = await startTestAdmin(t, gateway);
  const send = async (address: string, path = '/one'): Promise<string> => {
    const reply = await fetch(gateway.origin + path, { headers: { 'x-forwarded-for': address } });
    await reply.arrayBuffer();
    return reply.headers.get('x-gateway-decision') ?? '';
  };
  const get = async (path: string) => (await fetch(`${admin}${path}`)).json();
  const inspect = async (subject: string) => {
    const headers = { 'content-type': 'application/json' };
    return (
      await fetch(`${admin}/api/inspect`, { method: 'POST', headers, body: JSON.stringify({ subject }) })
    ).json();
  };
  return { gateway, send, get, inspect };
}

t.test('by default no address is shown', async (t) => {
  const { gateway, send, get, inspect } = await start(t, {});
  await send('203.0.113.7');
  const id = await send('203.0.113.7');
  t.match(await get(`/api/decisions/${id}`), { address: null });
  t.match(await inspect('203.0.113.7'), { address: null });
  await until(async () => ((await get('/api/decisions')) as { decisions: unknown[] }).decisions.length > 0);
  t.match(await get('/api/decisions'), { addresses: {} });
  t.equal(gateway.gateway.addresses, null);
});

t.test('with the setting: only for refused clients, and never in the log or metrics', async (t) => {
  const { gateway, send, get, inspect } = await start(t, { GATEWAY_SHOW_ADDRESSES: '10m' });
  await send('203.0.113.7');
  await send('203.0.113.8');
  const id = await send('203.0.113.7');
  t.match(await inspect('203.0.113.8'), { address: null }, 'a client without refusals');
  const { identity } = (await inspect('203.0.113.7')) as { identity: string };
  t.match(await get(`/api/decisions/${id}`), { address: '203.0.113.7' });
  const { facts } = (await get(`/api/decisions/${id}`)) as { facts: string[][] };
  t.strictSame(
    facts.find(([name]) => name === 'Address'),
    ['Address', '203.0.113.7'],
  );
  await until(async () => ((await get('/api/decisions')) as { decisions: unknown[] }).decisions.length > 0);
  t.strictSame(((await get('/api/decisions')) as { addresses: object }).addresses, {
    [identity]: '203.0.113.7',
  });
  await send('2001:db8:1:2:3::4');
  const other = await send('2001:db8:1:2:3::4');
  t.match(await get(`/api/decisions/${other}`), { address: '2001:db8:1:2::/64' });
  await setImmediate();
  t.notMatch(JSON.stringify(gateway.log), /203\.0\.113|2001:db8/);
  t.notMatch(JSON.stringify(gateway.gateway.samples()), /203\.0\.113|2001:db8/);
});

t.test('a limit for everyone counts the denied client, and its shared counter has no address', async (t) => {
  const { send, get, inspect } = await start(t, { GATEWAY_SHOW_ADDRESSES: '10m' });
  await send('203.0.113.7', '/all');
  const id = await send('203.0.113.8', '/all');
  t.match(await get(`/api/decisions/${id}`), { identifier: 'everyone', address: null });
  const { identity } = (await inspect('203.0.113.8')) as { identity: string };
  t.match(await get('/api/top'), { limited: [{ identity, denied: 1, policy: 'all' }] });
});
