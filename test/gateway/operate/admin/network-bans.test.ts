/** Tests bans by an address, a network and a key with the commands, and that nobody is banned by a mistake. */
import t from 'tap';
import { Bans } from '#gateway/bans/bans.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile('name: keys, route: GET /*, identifier: api-key, limit: 99, window: 366d');

for (const store of ['memory', 'Redis'])
  t.test(`${store}: a ban of a network holds for its addresses, and for no others`, async (t) => {
    const redis = store === 'Redis' ? await startRedis(t) : null;
    const env = {
      GATEWAY_TRUSTED_PROXIES: '127.0.0.1',
      ...(redis === null ? {} : { GATEWAY_REDIS_URL: redis.url }),
    };
    const [first, other] = await Promise.all([
      startTestGateway(t, { policies: POLICIES, env }),
      startTestGateway(t, { policies: POLICIES, env }),
    ]);
    const admin = await startTestAdmin(t, first);
    const ask = (...args: string[]) => floodgateCommand([...args, '--gateway', admin]);
    const statusFor = async (address: string, { origin } = first): Promise<number> => {
      const reply = await fetch(origin, { headers: { 'x-forwarded-for': address } });
      await reply.arrayBuffer();
      return reply.status;
    };

    const banned = await ask('ban', '192.0.2.77/24', '--for', '1h', '--reason', 'scan');
    t.equal(banned.code, 0, banned.stderr);
    t.match(banned.stdout, /^network 192\.0\.2\.0\/24 banned until \S+Z \(scan\)\n/);
    t.match((await ask('ban', '2001:db8::/32')).stdout, /^network 2001:db8::\/32 banned until/);
    for (const [address, status] of [
      ['192.0.2.1', 429],
      ['192.0.2.255', 429],
      ['192.0.3.1', 200],
      ['2001:db8:1::7', 429],
      ['2001:db9::7', 200],
    ] as const)
      t.equal(await statusFor(address), status, address);
    if (redis !== null) await until(async () => (await statusFor('192.0.2.1', other)) === 429);

    t.match((await ask('bans')).stdout, /192\.0\.2\.0\/24 +an operator .*scan/);
    t.match(JSON.parse((await ask('inspect', '192.0.2.9', '--json')).stdout), {
      ...{ kind: 'address', name: '192.0.2.9', identity: /^[\w-]{22}$/, banned: true },
      ban: { reason: 'scan' },
    });
    t.match(JSON.parse((await ask('inspect', '192.0.2.0/24', '--json')).stdout), {
      ...{ kind: 'network', name: '192.0.2.0/24', identity: '192.0.2.0/24', banned: true, buckets: [] },
    });
    t.match((await ask('explain', 'GET /', '--from', '192.0.2.9')).stdout, /banned until \S+: scan/);

    t.equal((await ask('unban', '192.0.2.9')).code, 1, 'the address itself has no ban');
    t.match(await ask('unban', '192.0.2.0/24'), { code: 0, stdout: /network 192\.0\.2\.0\/24: not banned/ });
    t.equal(await statusFor('192.0.2.1'), 200);
    if (redis !== null) await until(async () => (await statusFor('192.0.2.1', other)) === 200);
  });

t.test('the reply names the kind, and a mistake bans nobody', async (t) => {
  const gateway = await startTestGateway(t, { policies: POLICIES });
  const admin = await startTestAdmin(t, gateway);
  const ask = (...args: string[]) => floodgateCommand([...args, '--gateway', admin]);
  t.match(
    (await ask('ban', '192.0.2.7')).stdout,
    /^address 192\.0\.2\.7 banned until \S+Z\ndigest [\w-]{22}\n/,
  );
  t.match((await ask('ban', 'fbk_1')).stdout, /^key [\w-]{22} banned until/);
  t.match((await ask('ban', '198.51.100.8/32')).stdout, /^network 198\.51\.100\.8\/32 banned until/);
  t.match((await ask('inspect', '198.51.100.8')).stdout, /^address 198\.51\.100\.8 banned until/);
  for (const command of ['ban', 'inspect', 'reset', 'unban', 'digest'])
    for (const text of ['192.0.2.300', '192.0.2.0/33', 'example.org']) {
      const { code, stdout, stderr } = await ask(command, text);
      t.not(code, 0, `${command} ${text}`);
      t.equal(stdout, '');
      t.match(stderr, /--key/);
    }
  for (const wide of ['0.0.0.0/0', '10.0.0.0/7', '::/0', '2000::/3'])
    t.match(await ask('ban', wide), { code: 2, stderr: /too many clients/ }, wide);
  t.match(await ask('ban', '2001:db8::7/128'), { code: 2, stderr: /at most \/64/ });
  t.match((await ask('ban', '--key', 'example.org')).stdout, /^key [\w-]{22} banned until/);
  const { total } = JSON.parse((await ask('bans', '--json')).stdout);
  t.equal(total, 4);
  t.match(await ask('digest', '10.0.0.0/8'), { code: 1, stderr: /in policy files as it is/ });
});

t.test('of two networks, the larger one holds when the ban of the smaller one has ended', async (t) => {
  const bans = new Bans();
  const ban = (endsAt: number) => ({ endsAt, reason: '', policy: null });
  bans.set('10.0.0.0/8', ban(1000));
  bans.set('10.1.0.0/16', ban(500));
  const endAt = (now: number, address = [10, 1, 2, 3]) => bans.onAddress(address, now)?.endsAt;
  t.equal(endAt(0), 500);
  t.equal(endAt(0, [10, 2, 0, 1]), 1000);
  t.equal(endAt(600), 1000);
  t.equal(endAt(1000), undefined);
  t.equal(bans.size, 0);
  t.equal(bans.onAddress(null, 0), null);
  t.equal(endAt(0, [...new Array<number>(15).fill(0), 1]), undefined);
});
