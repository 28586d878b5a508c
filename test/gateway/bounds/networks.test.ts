/** Many clients of one IPv6 network hold at most a quarter of each total. */
import t from 'tap';
import { Introductions } from '#gateway/listen/proxy-protocol/introductions.ts';
import { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import { readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { type BareServer, type BareServerOptions, startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, startUpstream } from '#test/support/gateway.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const from = (address: string): string =>
  address.includes(':')
    ? `PROXY TCP6 ${address} ::1 5000 80\r\n`
    : `PROXY TCP4 ${address} 127.0.0.1 5000 80\r\n`;

/** The gateway is behind a proxy, so the test can be a client of any network. */
async function start(owner: Owner, options: Partial<BareServerOptions> = {}): Promise<BareServer> {
  const upstream = await startUpstream(owner, (_req, res) => res.end('ok'));
  return startBareServer(owner, {
    origin: upstream.origin,
    trustedProxies: '127.0.0.1',
    introductions: new Introductions(parseTrustedProxies('127.0.0.1')),
    bounds: { connections: { total: 8, perClient: 1 } },
    ...options,
  });
}

/** Sends one request and keeps the connection. @returns status and body */
async function ask(owner: Owner, port: number, address: string): Promise<RawConnection & { status: number }> {
  const client = sendRaw(port, from(address) + GET);
  owner.teardown(() => client.socket.destroy());
  const text = await client.until(/ok$|\}$/);
  return { ...client, status: Number(text.slice(9, 12)) };
}

t.test('429: a /48 has a quarter of the total, and others the rest', async (t) => {
  const { port, bounds, clients, warnings } = await start(t);
  const [first, second, third] = [
    await ask(t, port, '2001:db8:0:1::1'),
    await ask(t, port, '2001:db8:0:2::1'),
    await ask(t, port, '2001:db8:0:3::1'),
  ];
  t.same([first.status, second.status, third.status], [200, 200, 429]);
  t.match(third.received(), /"details":\{"bound":"connections","scope":"network"\}/);
  t.match(third.received(), /\r\nRetry-After: 1\r\n/);
  t.match(third.received(), /this network has too many open connections/);
  t.equal(bounds.connections.refusals.network, 1);
  t.match(warnings, [{ setting: 'GATEWAY_CONNECTIONS', limit: 2 }]);
  t.equal((await ask(t, port, '2001:db8:1:1::1')).status, 200, 'another /48 is served');
  t.equal((await ask(t, port, '192.0.2.1')).status, 200, 'IPv4 clients are not counted by network');
  first.socket.destroy();
  await until(() => bounds.connections.held === 3, 'one has left');
  t.equal((await ask(t, port, '2001:db8:0:3::1')).status, 200, 'the place is free again');
  t.equal(clients.networks, 2);
});

t.test('a client whose own share is larger than a quarter keeps it', async (t) => {
  const { port } = await start(t, { bounds: { connections: { total: 8, perClient: 3 } } });
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await ask(t, port, '2001:db8::1')).status);
  t.same(statuses, [200, 200, 200, 429]);
});

t.test('503: the total is reached before a PROXY header names the client', async (t) => {
  const { port } = await start(t, { bounds: { connections: { total: 1, perClient: 1 } } });
  t.equal((await ask(t, port, '192.0.2.1')).status, 200);
  const refused = sendRaw(port, from('192.0.2.2') + GET);
  const text = await refused.ended();
  t.match(text, /^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*\r\nRetry-After: 1\r\n/);
  t.match(text, /"details":\{"bound":"connections","scope":"total"\}/);
});

t.test('503: the total is reached, over TLS behind a PROXY header', async (t) => {
  const authority = createAuthority(t);
  const handshakes = new Handshakes(readKeyPair(authority.issue('server', 'IP:127.0.0.1')), {
    clock: () => 0,
    perClient: 100,
    onTooFast: () => undefined,
  });
  const { port, bounds } = await start(t, {
    handshakes,
    bounds: { connections: { total: 1, perClient: 1 } },
  });
  const holding = sendRaw(port, from('192.0.2.1'));
  t.teardown(() => holding.socket.destroy());
  await until(() => bounds.connections.held === 1, 'it has the only place');
  const raw = sendRaw(port, from('192.0.2.2'));
  raw.socket.removeAllListeners('data');
  const socket = await secured(port, authority.ca, { socket: raw.socket });
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  await new Promise((resolve) => socket.once('close', resolve));
  t.match(text, /^HTTP\/1\.1 503 /);
});
