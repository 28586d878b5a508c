/** How long idle connections stay open, and what the gateway says before it closes one for want of room. */
import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const PROXY = '127.0.0.1';
const CLIENT = '127.0.0.2';
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

const WAYS = [
  ['our parser', '1'],
  ['node:http', '0'],
] as const;

for (const [name, GATEWAY_OWN_PARSER] of WAYS) {
  const env = { GATEWAY_OWN_PARSER, GATEWAY_TRUSTED_PROXIES: PROXY };
  const policies = policyFile();

  t.test(`${name}: the reply says how long its connection is kept`, async (t) => {
    const keptFor = async (more: Readonly<Record<string, string>>, address: string): Promise<string> => {
      const { port } = await startTestGateway(t, { policies, env: { ...env, ...more } });
      const client = sendRaw(port, GET, address);
      const reply = await client.until(/\}$/);
      client.socket.destroy();
      return /\r\nKeep-Alive: timeout=(\d+)\r\n/.exec(reply)?.[1] ?? '';
    };
    t.equal(await keptFor({}, PROXY), '620');
    t.equal(await keptFor({}, CLIENT), '65');
    t.equal(await keptFor({ GATEWAY_KEEPALIVE_MS: '90000' }, PROXY), '90');
    t.equal(await keptFor({ GATEWAY_KEEPALIVE_MS: '90000' }, CLIENT), '90');
    t.equal(await keptFor({ GATEWAY_TRUSTED_PROXIES: '1' }, CLIENT), '620', 'with a hop count every peer');
  });

  t.test(`${name}: an idle connection is closed after the time of the setting`, async (t) => {
    const { port } = await startTestGateway(t, { policies, env: { ...env, GATEWAY_KEEPALIVE_MS: '1000' } });
    const clients = [PROXY, CLIENT].map((address) => sendRaw(port, GET, address));
    for (const client of clients) t.match(await client.ended(), /^HTTP\/1\.1 200 OK\r\n/);
  });

  t.test(`${name}: when connections are scarce, replies close theirs and say so`, async (t) => {
    const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
    const { port } = await startTestGateway(t, {
      upstream,
      policies: policyFile('name: one, route: GET /limited, identifier: ip, limit: 1, window: 1h'),
      env: { ...env, GATEWAY_CONNECTIONS: '8', GATEWAY_CLIENT_SHARE: '1' },
    });
    const clients: ReturnType<typeof sendRaw>[] = [];
    t.teardown(() => {
      for (const { socket } of clients) socket.destroy();
    });
    for (let i = 0; i < 7; i++) {
      const client = sendRaw(port, GET, CLIENT);
      clients.push(client);
      t.match(await client.until(/ok$/), /\r\nConnection: keep-alive\r\n/);
    }
    const closed = async (target: string): Promise<string> =>
      sendRaw(port, GET.replace('/', target), CLIENT).ended();
    t.match(await closed('/limited'), /^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n/s);
    t.match(await closed('/limited'), /^HTTP\/1\.1 429 .*\r\nConnection: close\r\n/s, 'also one of its own');
    t.match(await closed('/'), /^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n/s);
    const first = clients[0];
    clients[1]?.socket.destroy();
    first?.socket.write(GET);
    t.match(
      await first?.until(/ok.*ok$/s),
      /(?:\r\nConnection: keep-alive\r\n.*){2}/s,
      'with room it is kept',
    );
  });
}

t.test('a connection that a proxy of a known address has opened in advance is kept', async (t) => {
  const keepsEarly = async (GATEWAY_OWN_PARSER: string): Promise<void> => {
    const env = { GATEWAY_OWN_PARSER, GATEWAY_TRUSTED_PROXIES: PROXY };
    const { port } = await startTestGateway(t, { policies: policyFile(), env });
    const early = sendRaw(port, '', PROXY);
    const silent = sendRaw(port, '', CLIENT);
    const hops = await startTestGateway(t, {
      policies: policyFile(),
      env: { ...env, GATEWAY_TRUSTED_PROXIES: '1' },
    });
    const anybody = sendRaw(hops.port, '', PROXY);
    t.equal(await silent.ended(), '', 'a client must begin within ten seconds');
    t.equal(await anybody.ended(), '', 'with a hop count everybody must');
    early.socket.write(GET);
    t.match(await early.until(/\}$/), /^HTTP\/1\.1 200 OK\r\n/);
    early.socket.destroy();
  };
  await Promise.all(WAYS.map(([, parser]) => keepsEarly(parser)));
});
