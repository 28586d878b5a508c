/** `ban` of a policy on running gateways: which clients are banned, for how long, and which never are. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { explainLive } from '#gateway/operate/admin/explain-live.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import type { Clock } from '#shared/clock.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { onEachStore } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

/** More than a month before the end of the long window. */
const NOON = Date.parse('2026-06-01T12:00:00Z');

const SALT = 'salt of the bans';
const KEY = { name: 'api-key', kind: 'credential', sources: [] } as const;
const PARTNER = new Digester(SALT).identify(KEY, 'partner').digest;
const ALLOWED = `allow: [{ address: 198.51.100.0/24 }, { address: "2001:db8:7::1" }, { digest: ${PARTNER} }]`;
const FILE = `${ALLOWED}\n${policyFile(
  'name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
  'name: keys, route: "GET /keys", identifier: api-key, limit: 1, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
  'name: trial, route: "GET /trial", identifier: ip, limit: 1, window: 366d, mode: shadow, ban: { after: 10, within: 1h, for: 1h }',
)}`;

t.test('who is denied too often is banned on every gateway', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (req, res) =>
    res.writeHead(req.headers['x-api-key'] === 'invented' ? 401 : 200).end('{}'),
  );
  const env = { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: SALT };
  await onEachStore(t, { upstream, policies: FILE, env }, async (t, one, two) => {
    const ask = (i: number, path: string, from: string, headers: Record<string, string> = {}) =>
      send((i % 2 === 0 ? one : two).port, path, { headers: { 'x-forwarded-for': from, ...headers } });
    const codeOf = async (...request: Parameters<typeof ask>): Promise<string> =>
      JSON.parse((await ask(...request)).body.toString()).code ?? 'passed';
    /** Sends requests in sequence, alternating between both gateways. */
    const denials = async (times: number, path: string, from: string, headers?: Record<string, string>) => {
      for (let i = 0; i < times; i++) await ask(i, path, from, headers);
    };
    const banned = (i: number, path: string, from: string, headers?: Record<string, string>) =>
      until(async () => (await codeOf(i, path, from, headers)) === 'gateway_banned');
    const bansOf = (policy: string, mode: string): number =>
      [...new Set([one, two])]
        .map(({ sample }) => Math.max(0, sample('floodgate_policy_bans_total', { policy, mode })))
        .reduce((sum, value) => sum + value);

    await denials(10, '/all', '192.0.2.1');
    t.equal(bansOf('all', 'enforce'), 0, 'one admitted request and nine denials cause no ban');
    await denials(1, '/all', '192.0.2.1');
    await banned(0, '/other', '192.0.2.1');
    await banned(1, '/other', '192.0.2.1');
    t.equal(bansOf('all', 'enforce'), 1);
    t.equal(await codeOf(0, '/all', '192.0.2.2'), 'passed', 'another client is admitted');
    const { gateway } = one;
    const { headers } = await ask(0, '/all', '192.0.2.1');
    t.ok(Number(headers['retry-after']) > 3500 && Number(headers['retry-after']) <= 3600);
    const record = await gateway.findDecision(String(headers['x-gateway-decision']));
    t.match(record, { decision: 'banned', policy: 'ban by policy all' });
    t.ok(record !== null && textOf(record).reasons.includes('This client has a ban by policy all.'));

    const client = new Digester(SALT).identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, '192.0.2.1');
    t.equal((await gateway.control.banOf(client))?.reason, 'policy all denied it 10 times within 3600 s');
    t.equal(await gateway.control.unban(client), true);
    for (const i of [0, 1]) await until(async () => (await codeOf(i, '/other', '192.0.2.1')) === 'passed');
    await denials(30, '/all', '192.0.2.1');
    t.equal(await gateway.control.banOf(client), null, 'a client that an operator unbanned stays unbanned');

    const v6 = (i: number) => `2001:db8:1:2::${i}`;
    for (let i = 0; i < 11; i++) await ask(i, '/all', v6(i));
    await banned(0, '/other', v6(99));

    // An unproven key bans nobody, neither itself nor its address.
    await denials(30, '/keys', '192.0.2.3', { 'x-api-key': 'invented' });
    t.equal(await codeOf(0, '/other', '192.0.2.3', { 'x-api-key': 'invented' }), 'passed');
    t.equal(await codeOf(0, '/other', '192.0.2.3'), 'passed');

    // The first request has proven this key.
    await ask(0, '/keys', '192.0.2.4', { 'x-api-key': 'customer' });
    await denials(12, '/keys', '192.0.2.4', { 'x-api-key': 'customer' });
    await banned(0, '/other', '192.0.2.5', { 'x-api-key': 'customer' });
    t.equal(await codeOf(0, '/other', '192.0.2.4'), 'passed', 'the address of the key is admitted');

    await denials(30, '/trial', '192.0.2.6');
    await until(() => bansOf('trial', 'shadow') === 1);
    t.equal(await codeOf(0, '/trial', '192.0.2.6'), 'passed', 'a shadow policy bans nobody');
    t.equal(bansOf('trial', 'enforce'), 0);

    await denials(30, '/all', '198.51.100.1');
    t.equal(await codeOf(0, '/all', '198.51.100.1'), 'passed', 'a client on the allow list is not banned');
    t.equal(bansOf('all', 'enforce'), 2);
  });
});

t.test('a ban by a policy of an address leaves those alone who only share it', async (t) => {
  await insideLongWindow();
  const env = { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: SALT };
  await onEachStore(t, { policies: FILE, env }, async (t, one, two) => {
    const gateways = [...new Set([one, two])];
    const codesOf = (path: string, from: string, headers: Record<string, string> = {}) =>
      Promise.all(
        gateways.map(async ({ port }) => {
          const { body } = await send(port, path, { headers: { 'x-forwarded-for': from, ...headers } });
          return String(JSON.parse(body.toString()).code ?? 'passed');
        }),
      );
    const passes = async (...request: Parameters<typeof codesOf>) =>
      t.same(new Set(await codesOf(...request)), new Set(['passed']), JSON.stringify(request));
    const isRefused = async (...request: Parameters<typeof codesOf>) =>
      (await codesOf(...request)).every((code) => code === 'gateway_banned');
    const refuses = async (...request: Parameters<typeof codesOf>) =>
      t.ok(await isRefused(...request), JSON.stringify(request));
    const offend = async (from: string) => {
      for (let i = 0; i < 12; i++) await send(one.port, '/all', { headers: { 'x-forwarded-for': from } });
      await until(() => isRefused('/other', from));
    };
    const customer = { 'x-api-key': 'customer' };

    // Only the first gateway sees that the key works.
    await send(one.port, '/keys', { headers: { 'x-forwarded-for': '192.0.2.2', ...customer } });
    await offend('192.0.2.1');
    await passes('/other', '192.0.2.1', customer);
    await passes('/other', '192.0.2.1', { 'x-api-key': 'partner' });
    await refuses('/other', '192.0.2.1', { 'x-api-key': 'invented' });
    await refuses('/other', '192.0.2.1', { ...customer, authorization: 'Bearer fbk_other' });

    const explained = async (headers: Record<string, string>) => {
      const rawHeaders = Object.entries(headers).flat();
      const request = {
        method: 'GET',
        target: '/other',
        rawHeaders,
        socket: { remoteAddress: '192.0.2.1' },
      };
      const { control, policies } = one.gateway;
      const parts = { trust: { kind: 'none' }, control, clock: Date.now } as const;
      const { decision, reason } = await explainLive(request, policies(), parts);
      return `${decision}: ${reason}`;
    };
    t.match(await explained({ 'x-api-key': 'invented' }), /^deny: .* banned until .*: policy all denied/);
    t.match(await explained(customer), /^uncovered: no policy/);
    t.match(await explained({ 'x-api-key': 'partner' }), /^uncovered: allow has/);

    await offend('2001:db8:7::2');
    await passes('/all', '2001:db8:7::1');

    const { control } = one.gateway;
    const digester = new Digester(SALT);
    const address = digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, '192.0.2.1');
    t.match(await control.banOf(address), { policy: 'all' });
    t.equal(await control.unban(address), true);
    await control.ban(address, 600_000, 'by an operator');
    t.match(await control.banOf(address), { policy: null, reason: 'by an operator' });
    await until(() => isRefused('/other', '192.0.2.1', customer));
    await refuses('/other', '192.0.2.1', { 'x-api-key': 'partner' });
    await control.unban(address);
    await until(async () => !(await codesOf('/other', '192.0.2.1')).includes('gateway_banned'));

    // A ban of the key applies to every address, and only to the key.
    for (let i = 0; i < 12; i++) await codesOf('/keys', '192.0.2.3', customer);
    await until(() => isRefused('/other', '192.0.2.4', customer));
    await offend('192.0.2.5');
    await refuses('/other', '192.0.2.5', customer);
    await passes('/other', '192.0.2.3');
  });
});

t.test('nobody is banned for others who have the same address because a proxy names no client', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: FILE,
    env: { GATEWAY_TRUSTED_PROXIES: 'loopback, 10.0.0.0/8' },
  });
  const codeOf = async (path: string, headers: Record<string, string>): Promise<string> =>
    JSON.parse((await send(port, path, { headers })).body.toString()).code ?? 'passed';
  const shared = [{}, { 'x-forwarded-for': 'unreadable' }, { 'x-forwarded-for': '10.0.0.7' }];
  for (const headers of shared) {
    for (let i = 0; i < 12; i++) await send(port, '/all', { headers });
    t.equal(await codeOf('/all', headers), 'gateway_rate_limited');
  }
  const own = { 'x-forwarded-for': '192.0.2.1' };
  for (let i = 0; i < 12; i++) await send(port, '/all', { headers: own });
  // Denials are counted in the order of their arrival.
  await until(async () => (await codeOf('/other', own)) === 'gateway_banned');
  for (const headers of shared) t.equal(await codeOf('/other', headers), 'passed', JSON.stringify(headers));
});

t.test('with a hop count, a chain that is too short bans nobody', async (t) => {
  await insideLongWindow();
  const env = { GATEWAY_TRUSTED_PROXIES: '2' };
  const { port } = await startTestGateway(t, { policies: FILE, env });
  const codeOf = async (path: string, chain: string | null): Promise<string> => {
    const headers: Record<string, string> = chain === null ? {} : { 'x-forwarded-for': chain };
    return JSON.parse((await send(port, path, { headers })).body.toString()).code ?? 'passed';
  };
  const short = [null, '10.0.0.7', 'unreadable, 10.0.0.7'];
  for (const chain of short) for (let i = 0; i < 12; i++) await codeOf('/all', chain);
  t.equal(await codeOf('/all', null), 'gateway_rate_limited', 'unreadable chains share one counter');
  for (let i = 0; i < 12; i++) await codeOf('/all', '192.0.2.1, 10.0.0.7');
  // Denials are counted in the order in which they came.
  await until(async () => (await codeOf('/other', '192.0.2.1, 10.0.0.7')) === 'gateway_banned');
  for (const chain of short) t.equal(await codeOf('/other', chain), 'passed', String(chain));
  t.equal(await codeOf('/other', '192.0.2.2, 10.0.0.7'), 'passed', 'other clients of the proxy are admitted');
});

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

t.test('a valid token passes a ban of its address, a forged one does not', async (t) => {
  const upstream = await startUpstream(t);
  const folder = temporaryFolder(t);
  const [signer, forger] = [await newSigner('ES256', 'a'), await newSigner('ES256', 'a')];
  writeFileSync(join(folder, 'keys.json'), keySetText(signer));
  const policies = join(folder, 'policies.yaml');
  writeFileSync(
    policies,
    `version: 1
identifiers:
  ip: { source: client-address }
  user: { source: [{ jwt: { bearer: true, claim: sub, jwks: keys.json } }] }
policies:
  - { name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 1, within: 1h, for: 1h } }
  - { name: users, route: "GET /users", identifier: user, limit: 1, window: 366d }
`,
  );
  const { port } = await startTestGateway(t, { upstream, env: { GATEWAY_POLICIES: policies } });
  const codeOf = async (authorization = ''): Promise<string> => {
    const headers: Record<string, string> = authorization === '' ? {} : { authorization };
    return JSON.parse((await send(port, '/other', { headers })).body.toString()).code ?? 'passed';
  };
  for (let i = 0; i < 2; i++) await send(port, '/all');
  await until(async () => (await codeOf()) === 'gateway_banned');
  const exp = Math.floor(Date.now() / 1000) + 3600;
  t.equal(await codeOf(`Bearer ${await sign(signer, { sub: 'one', exp })}`), 'passed');
  t.equal(await codeOf(`Bearer ${await sign(forger, { sub: 'one', exp })}`), 'gateway_banned');
});

t.test('each ban is twice as long as the one before, at most a week', async (t) => {
  let ahead = 0;
  const clock: Clock = () => NOON + performance.now() + ahead;
  const policies = policyFile(
    'name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 2, within: 1h, for: 2d, growing: true }',
  );
  const { port } = await startTestGateway(t, { policies, clock });
  const lengths: number[] = [];
  await send(port, '/all');
  for (let round = 0; round < 4; round++) {
    let retry = 0;
    await until(async () => {
      const { headers, body } = await send(port, '/all');
      if (JSON.parse(body.toString()).code !== 'gateway_banned') return false;
      retry = Number(headers['retry-after']);
      return true;
    });
    lengths.push(Math.ceil(retry / 86_400));
    ahead += retry * 1000 + 1000;
  }
  t.strictSame(lengths, [2, 4, 7, 7]);
});
