/** The page tells what the gateway refused for other reasons than a policy, as parts of one whole. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { TrafficHistory } from '#gateway/operate/admin/history.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startOpenEnded } from '#test/support/upstreams.ts';

const POLICIES = policyFile(
  'name: one, route: "GET /one/*", identifier: ip, limit: 1, window: 366d',
  'name: form, route: POST /form, identifier: { body: email }, limit: 9, window: 366d',
);
/** A module of the page, which has no types here. */
const TRAFFIC: string = '#gateway/operate/admin/page/traffic.js';
const LONG = `/one/${'a'.repeat(300)}`;
const SWITCH = 'GET /socket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';

t.test('the refusals at the moment are the sum of their reasons', async (t) => {
  const upstream = await startOpenEnded(t);
  const gateway = await startTestGateway(t, { upstream, policies: POLICIES, env: { GATEWAY_UPGRADES: '1' } });
  const body = 'email=a&+email=b';
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  for (const [status, path, more] of [
    [200, LONG, {}],
    [429, LONG, {}],
    [429, LONG, {}],
    [400, '/form', { method: 'POST', headers, body }],
  ] as const) {
    const reply = await fetch(gateway.origin + path, more);
    t.equal(reply.status, status);
    await reply.body?.cancel();
  }
  const first = sendRaw(gateway.port, SWITCH);
  await first.until(/open/);
  await sendRaw(gateway.port, SWITCH).until(/HTTP\/1\.1 429/);
  first.socket.destroy();
  const replies = ['1xx', '2xx', 'none', 'bound'].map((status) =>
    gateway.sample('floodgate_replies_total', { status }),
  );
  t.strictSame(replies, [1, 1, 0, 1]);
  const { control } = gateway.gateway;
  const address = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
  const client = new Digester(await control.salt()).identify(address, '127.0.0.1');
  await control.ban(client, 60_000, '');
  for (let i = 0; i < 3; i++) await (await fetch(gateway.origin)).arrayBuffer();
  const history = new TrafficHistory(0);
  const grown = history.add([families(gateway.gateway.samples())], 1000);
  const { Traffic } = await import(TRAFFIC);
  const traffic = new Traffic();
  traffic.take(history.traffic());
  traffic.add({ at: new Date(1000).toISOString(), rates: history.rates(), grown });
  t.strictSame(traffic.flow(), {
    all: 9,
    refused: 7,
    reasons: [
      ['denied', 2],
      ['malformed', 1],
      ['banned', 3],
      ['at a bound', 1],
    ],
  });
});
