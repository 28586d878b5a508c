/** The page tells what the gateway refused for other reasons than a policy, and on which paths. */
import t from 'tap';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { TrafficHistory } from '#gateway/operate/admin/history.ts';
import { startTestAdmin } from '#test/support/admin.ts';
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

t.test('every refusal is counted for its path, and those by bounds in the chart', async (t) => {
  const upstream = await startOpenEnded(t);
  const gateway = await startTestGateway(t, { upstream, policies: POLICIES, env: { GATEWAY_UPGRADES: '1' } });
  const admin = await startTestAdmin(t, gateway);
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
  const { paths } = (await (await fetch(`${admin}/api/top`)).json()) as { paths: Record<string, unknown>[] };
  t.strictSame(
    paths.map(({ path, requests, refused }) => [path, requests, refused]),
    [
      [LONG.slice(0, 200), 3, 2],
      ['/socket', 2, 1],
      ['/form', 1, 1],
    ],
  );
  first.socket.destroy();
  const replies = ['1xx', '2xx', 'none', 'bound'].map((status) =>
    gateway.sample('floodgate_replies_total', { status }),
  );
  t.strictSame(replies, [1, 1, 0, 1]);
  const history = new TrafficHistory(0);
  history.add([families(gateway.gateway.samples())], 1);
  const { Traffic } = await import(TRAFFIC);
  const traffic = new Traffic();
  traffic.take(history.traffic());
  t.strictSame(traffic.statusesIn(traffic.range(300_000).bars), [
    ['1xx', 1],
    ['2xx', 1],
    ['refused at a bound', 1],
  ]);
});
