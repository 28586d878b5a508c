/** How gateways read, wait for and forward bodies that a policy counts. What it counts is in test/policies/body.yaml. */
import t from 'tap';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import {
  BEHIND_PROXY,
  policyFile,
  startTestGateway,
  startUpstream,
  type TestGateway,
} from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = policyFile(
  'name: logins, route: "POST /login", identifier: { body: email }, limit: 3, window: 366d',
  'name: address, route: "POST /login", identifier: ip, limit: 50, window: 366d',
  'name: strict, route: "POST /strict", identifier: { body: email, required: true }, limit: 3, window: 366d',
);
const PARSERS = [
  ['own parser', '1'],
  ['node:http', '0'],
] as const;

const head = (fields: readonly string[], path = '/login'): string =>
  `${[`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', ...fields].join('\r\n')}\r\n\r\n`;

function whole(body: string, path = '/login', fields: readonly string[] = []): string {
  return head([`Content-Length: ${Buffer.byteLength(body)}`, ...fields], path) + body;
}

/** Everything that a client can hold but its connection. */
function heldBy({ gateway }: TestGateway): number {
  return gateway
    .samples()
    .filter(({ name, labels }) => name === 'floodgate_held' && labels.bound !== 'connections')
    .reduce((sum, { value }) => sum + value, 0);
}

for (const [parser, GATEWAY_OWN_PARSER] of PARSERS) {
  const env = { GATEWAY_OWN_PARSER };

  t.test(`${parser}: forwards bodies unchanged`, async (t) => {
    await insideLongWindow();
    const redis = await startRedis(t);
    const gateway = await startTestGateway(t, {
      policies: FILE,
      env: { ...env, GATEWAY_REDIS_URL: redis.url },
    });
    const { port } = gateway;
    let account = 0;
    for (const bytes of [0, 60, 8192, 8193, 16_384, 16_385, 200_000]) {
      for (const pieces of [undefined, 61, 5000]) {
        const start = bytes === 0 ? '' : `{"email":"é${account++}@example.org","x":"`;
        const text = bytes === 0 ? '' : `${start}${'y'.repeat(bytes - Buffer.byteLength(start) - 2)}"}`;
        const headers = { 'content-type': 'application/json' };
        const answer = await send(port, '/login', {
          method: 'POST',
          headers,
          body: text,
          ...(pieces === undefined ? {} : { pieces }),
        });
        t.equal(answer.status, 200);
        const seen = JSON.parse(answer.body.toString());
        t.equal(seen.body, text, `${bytes} bytes in ${pieces ?? 'one piece'}`);
        const framing = pieces === undefined || bytes === 0 ? 'content-length' : 'transfer-encoding';
        t.ok(
          seen.headers.some((name: string) => name.toLowerCase() === framing),
          framing,
        );
        const isRead = bytes <= 8192 && bytes > 0;
        t.equal(/logins/.test(String(answer.headers['ratelimit-policy'])), isRead);
      }
    }
    t.equal(gateway.sample('floodgate_unread_bodies_total'), 12);
    t.equal(heldBy(gateway), 0);
  });

  t.test(`${parser}: reads bodies in any pieces, and requests behind them`, async (t) => {
    await insideLongWindow();
    const gateway = await startTestGateway(t, { policies: FILE, env });
    const body = '{"email":"a@example.org"}';
    const client = sendRaw(gateway.port, '');
    client.socket.setNoDelay(true);
    const text = whole(body);
    for (let i = 0; i < text.length; i++) {
      client.socket.write(text.charAt(i));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await client.until(/HTTP\/1\.1 200 [\s\S]*a@example\.org/);
    client.socket.write(whole(body).repeat(3));
    await client.until(/(?:HTTP\/1\.1 200 [\s\S]*){3}HTTP\/1\.1 429 [\s\S]*\}$/);
    client.socket.write('GET /free HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.until(/"url":"\/free"[\s\S]*\}$/);
    client.socket.write(`${head(['Transfer-Encoding: chunked'])}19\r\n${body}\r\n0\r\n\r\n`);
    await client.until(/(?:HTTP\/1\.1 429 [\s\S]*){2}\}$/);
    client.socket.write('GET /last HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.until(/"url":"\/last"/);
    client.socket.destroy();
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });

  t.test(`${parser}: sends 100 Continue once to a client that waits for it`, async (t) => {
    await insideLongWindow();
    const { port } = await startTestGateway(t, { policies: FILE, env });
    const body = '{"email":"a@example.org"}';
    const client = sendRaw(port, '');
    for (let i = 1; i <= 4; i++) {
      const status = i <= 3 ? 200 : 429;
      client.socket.write(head([`Content-Length: ${body.length}`, 'Expect: 100-continue']));
      await client.until(new RegExp(`(?:HTTP/1\\.1 100 Continue\\r\\n\\r\\n[\\s\\S]*){${i}}$`));
      client.socket.write(body);
      await client.until(new RegExp(`HTTP/1\\.1 ${status} [\\s\\S]*\\}$`));
      await until(() => (client.received().match(/HTTP\/1\.1 [24]/g)?.length ?? 0) === i, `reply ${i}`);
    }
    t.equal(client.received().match(/100 Continue/g)?.length, 4, 'one interim reply for each request');
    client.socket.write('GET /free HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.until(/"url":"\/free"/);
    client.socket.destroy();

    const large = sendRaw(port, head(['Content-Length: 9000', 'Expect: 100-continue']));
    await large.until(/100 Continue\r\n\r\n$/);
    large.socket.write('x'.repeat(9000));
    await large.until(/"body":"x{9000}"/);
    large.socket.destroy();
  });

  t.test(`${parser}: nothing is charged and nothing forwarded before the body is whole`, async (t) => {
    await insideLongWindow();
    const reached: string[] = [];
    const upstream = await startRawUpstream(t, (socket, text) => {
      reached.push(text);
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const gateway = await startTestGateway(t, { upstream, policies: FILE, env });
    const body = '{"email":"a@example.org"}';
    for (const [framing, part] of [
      [`Content-Length: ${body.length}`, body.slice(0, 12)],
      ['Transfer-Encoding: chunked', `19\r\n${body.slice(0, 12)}`],
    ] as const) {
      for (const leave of ['end', 'resetAndDestroy'] as const) {
        const client = sendRaw(gateway.port, head([framing]) + part);
        await until(() => gateway.sample('floodgate_held', { bound: 'connections' }) > 0, 'it is connected');
        client.socket[leave]();
        await client.ended();
        await until(() => gateway.sample('floodgate_held', { bound: 'connections' }) === 0, 'it is gone');
      }
    }
    t.strictSame(reached, []);
    t.equal(gateway.sample('floodgate_requests_total', { outcome: 'allowed' }), 0);
    t.equal(gateway.sample('floodgate_requests_total', { outcome: 'undecided' }), 4);
    t.equal(heldBy(gateway), 0);
    const clients = Array.from({ length: 3 }, () => sendRaw(gateway.port, whole(body)));
    for (const client of clients) {
      await client.until(/HTTP\/1\.1 200 /);
      client.socket.destroy();
    }
  });
}

t.test('a client over another limit is denied before its body is read', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: policyFile(
      'name: logins, route: "POST /login", identifier: { body: email }, limit: 2, window: 366d',
      'name: address, route: "POST /login", identifier: ip, limit: 1, window: 366d',
    ),
  });
  const first = sendRaw(port, whole('{"email":"a@example.org"}'));
  await first.until(/HTTP\/1\.1 200 /);
  const client = sendRaw(port, head(['Content-Length: 100']));
  await client.until(/HTTP\/1\.1 429 /);
  for (const { socket } of [first, client]) socket.destroy();
});

t.test('a slow body is refused with 408', async (t) => {
  const upstream = await startUpstream(t);
  const server = await startBareServer(t, { origin: upstream.origin, policies: FILE, checkMs: 50 });
  const slow = [
    'Content-Length: 8000',
    'Transfer-Encoding: chunked',
    'Content-Length: 5\r\nExpect: 100-continue',
  ].map((framing) => sendRaw(server.port, head([framing])));
  const drip = setInterval(() => slow[0]?.socket.write('x'), 20);
  t.teardown(() => clearInterval(drip));
  for (const client of slow) t.match(await client.ended(), /HTTP\/1\.1 408 /);
  await until(() => server.clients.size === 0, 'everything is given back');
});

t.test('a login that comes in one piece passes while all places are taken', async (t) => {
  await insideLongWindow();
  const gateway = await startTestGateway(t, {
    policies: FILE,
    env: { GATEWAY_OWN_PARSER: '1', GATEWAY_WAITING: '1', ...BEHIND_PROXY },
  });
  const slow = sendRaw(gateway.port, head(['Content-Length: 25', 'X-Forwarded-For: 192.0.2.1']));
  await until(() => gateway.sample('floodgate_held', { bound: 'waiting' }) === 1, 'its body is waited for');
  const refused = sendRaw(gateway.port, head(['Content-Length: 25', 'X-Forwarded-For: 192.0.2.3']));
  t.match(await refused.until(/"decision":"\w*"\}$/), /^HTTP\/1\.1 503 /);
  refused.socket.destroy();
  t.equal(gateway.sample('floodgate_requests_total', { outcome: 'undecided' }), 1, 'a refused request');
  const body = '{"email":"a@example.org"}';
  const quick = sendRaw(gateway.port, whole(body, '/login', ['X-Forwarded-For: 192.0.2.2']));
  t.match(await quick.until(/\r\n\r\n/), /^HTTP\/1\.1 200 /);
  slow.socket.destroy();
  quick.socket.destroy();
  await until(() => heldBy(gateway) === 0, 'everything is given back');
  t.equal(gateway.sample('floodgate_requests_total', { outcome: 'allowed' }), 1);
  t.equal(gateway.sample('floodgate_requests_total', { outcome: 'undecided' }), 2, 'a client that left');
});
