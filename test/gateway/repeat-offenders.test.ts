/** `ban` of a policy on running gateways: who is banned, for how long, and who never is. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import type { Clock } from '#shared/clock.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startStores } from '#test/support/stores.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';
import { send } from './proxy/exchange.ts';

/** More than a month before the end of the long window. */
const NOON = Date.parse('2026-06-01T12:00:00Z');

const SALT = 'salt of the bans';
const FILE = `allow: [{ address: 198.51.100.0/24 }]\n${policyFile(
  'name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
  'name: keys, route: "GET /keys", identifier: api-key, limit: 1, window: 366d, ban: { after: 10, within: 1h, for: 1h }',
  'name: trial, route: "GET /trial", identifier: ip, limit: 1, window: 366d, mode: shadow, ban: { after: 10, within: 1h, for: 1h }',
)}`;

t.test('who is denied too often is banned on every gateway', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t, (req, res) =>
    res.writeHead(req.headers['x-api-key'] === 'invented' ? 401 : 200).end('{}'),
  );
  for (const store of await startStores(t)) {
    await t.test(store.name, async (t) => {
      const start = () =>
        startTestGateway(t, {
          upstream: upstream.origin,
          policies: FILE,
          env: {
            GATEWAY_TRUSTED_PROXIES: 'loopback',
            GATEWAY_IDENTITY_SECRET: SALT,
            ...store.env,
          },
        });
      const one = await start();
      const two = store.isShared ? await start() : one;
      const ask = (i: number, path: string, from: string, headers: Record<string, string> = {}) =>
        send((i % 2 === 0 ? one : two).port, path, { headers: { 'x-forwarded-for': from, ...headers } });
      const codeOf = async (...request: Parameters<typeof ask>): Promise<string> =>
        JSON.parse((await ask(...request)).body.toString()).code ?? 'passed';
      /** Sent one after the other, on both gateways in turn. */
      const denials = async (times: number, path: string, from: string, headers?: Record<string, string>) => {
        for (let i = 0; i < times; i++) await ask(i, path, from, headers);
      };
      const banned = (i: number, path: string, from: string, headers?: Record<string, string>) =>
        until(async () => (await codeOf(i, path, from, headers)) === 'gateway_banned');
      const bansOf = (policy: string, mode: string): number =>
        [one, ...(two === one ? [] : [two])]
          .flatMap(({ gateway }) => gateway.samples())
          .filter(
            ({ name, labels }) =>
              name === 'floodgate_policy_bans_total' && labels.policy === policy && labels.mode === mode,
          )
          .reduce((sum, { value }) => sum + value, 0);

      await denials(10, '/all', '192.0.2.1');
      t.equal(bansOf('all', 'enforce'), 0, 'one request passed and nine were denied');
      await denials(1, '/all', '192.0.2.1');
      await banned(0, '/other', '192.0.2.1');
      await banned(1, '/other', '192.0.2.1');
      t.equal(bansOf('all', 'enforce'), 1);
      t.equal(await codeOf(0, '/all', '192.0.2.2'), 'passed', 'another client');
      const { gateway } = one;
      const { headers } = await ask(0, '/all', '192.0.2.1');
      t.ok(Number(headers['retry-after']) > 3500 && Number(headers['retry-after']) <= 3600);
      t.match(await gateway.findDecision(String(headers['x-gateway-decision'])), { decision: 'banned' });

      const client = new Digester(SALT).identify(
        { name: 'ip', kind: 'address', ipv6Prefix: 64 },
        '192.0.2.1',
      );
      t.equal((await gateway.control.banOf(client))?.reason, 'policy all denied it 10 times within 3600 s');
      t.equal(await gateway.control.unban(client), true);
      for (const i of [0, 1]) await until(async () => (await codeOf(i, '/other', '192.0.2.1')) === 'passed');
      await denials(30, '/all', '192.0.2.1');
      t.equal(await gateway.control.banOf(client), null, 'whom an operator lets in stays in');

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
      t.equal(await codeOf(0, '/other', '192.0.2.4'), 'passed', 'not its address');

      await denials(30, '/trial', '192.0.2.6');
      await until(() => bansOf('trial', 'shadow') === 1);
      t.equal(await codeOf(0, '/trial', '192.0.2.6'), 'passed', 'in shadow mode nobody is banned');
      t.equal(bansOf('trial', 'enforce'), 0);

      await denials(30, '/all', '198.51.100.1');
      t.equal(await codeOf(0, '/all', '198.51.100.1'), 'passed', 'nor a client on the list allow');
      t.equal(bansOf('all', 'enforce'), 2);
    });
  }
});

t.test('each ban is twice as long as the one before, at most a week', async (t) => {
  const upstream = await startUpstream(t);
  let ahead = 0;
  const clock: Clock = () => NOON + performance.now() + ahead;
  const policies = policyFile(
    'name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ban: { after: 2, within: 1h, for: 2d, growing: true }',
  );
  const { port } = await startTestGateway(t, { upstream: upstream.origin, policies, clock });
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
