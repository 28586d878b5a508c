/** Tests what connections hold during their handshake, and that they give it back. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import t from 'tap';
import { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import { readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { createAuthority } from '#test/support/certificates.ts';
import type { Owner } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { secured, sendTls } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const authority = createAuthority(t);
const { ca } = authority;
const pair = readKeyPair(authority.issue('server', 'IP:127.0.0.1'));
const CLIENT_HELLO_BEGUN = '\x16\x03\x01\x02\x00\x01\x00';

const handshakesWith = (options: Partial<ConstructorParameters<typeof Handshakes>[1]> = {}): Handshakes =>
  new Handshakes(pair, { clock: () => 0, perClient: 100, onTooFast: () => undefined, ...options });

function connected(owner: Owner, port: number, from: string, text = ''): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  socket.on('error', () => socket.destroy());
  socket.write(text, 'latin1');
  owner.teardown(() => socket.destroy());
  return socket;
}

t.test('connections count for their client before the handshake', async (t) => {
  const { port, bounds, clients } = await startBareServer(t, {
    bounds: { connections: { perClient: 3 } },
    handshakes: handshakesWith(),
  });
  const held = [
    connected(t, port, '127.0.0.7'),
    connected(t, port, '127.0.0.7', CLIENT_HELLO_BEGUN),
    await secured(port, ca, { localAddress: '127.0.0.7' }),
  ];
  await until(() => bounds.connections.held === 3, 'three are held');
  const refused = await sendTls(port, '/a', ca, { localAddress: '127.0.0.7' });
  t.equal(refused.status, 429);
  t.match(JSON.parse(refused.body.toString()), { details: { bound: 'connections', scope: 'client' } });
  t.equal((await sendTls(port, '/a', ca)).status, 200, 'another client is served');
  for (const socket of held) socket.destroy();
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
});

t.test('only so many refused connections wait for a reply at once', async (t) => {
  const { port, bounds } = await startBareServer(t, {
    bounds: { connections: { perClient: 1 } },
    handshakes: handshakesWith(),
  });
  connected(t, port, '127.0.0.7');
  await until(() => bounds.connections.held === 1, 'it holds its only one');
  const silent = Array.from({ length: 80 }, () => connected(t, port, '127.0.0.7'));
  await until(() => silent.filter(({ closed }) => closed).length === 16, 'the others are closed');
  t.equal(bounds.connections.refusals.client, 80);
});

t.test('cuts an unfinished handshake, at every step', async (t) => {
  const handshakes = handshakesWith({ timeoutMs: 100 });
  const { port, bounds, clients } = await startBareServer(t, { handshakes });
  const silent = connected(t, port, '127.0.0.7');
  const stuck = connected(t, port, '127.0.0.8', CLIENT_HELLO_BEGUN);
  await Promise.all([once(silent, 'close'), once(stuck, 'close')]);
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
  t.equal(handshakes.failures.timeout, 2);
});

t.test('failed handshakes give their place back', async (t) => {
  const handshakes = handshakesWith();
  const { port, bounds, clients } = await startBareServer(t, { handshakes });
  for (const text of [
    '\x16\x03\x01\x00\x05hello',
    `${CLIENT_HELLO_BEGUN}${'\xff'.repeat(600)}`,
    'GET / HTTP/1.0\r\n\r\n',
    '\0'.repeat(100_000),
  ])
    await sendRaw(port, text).ended();
  const gone = connected(t, port, '127.0.0.7');
  await until(() => bounds.connections.held === 1, 'it is there');
  gone.end();
  const reset = connected(t, port, '127.0.0.7', CLIENT_HELLO_BEGUN);
  await until(() => bounds.connections.held === 1 || reset.connecting === false, 'they come');
  reset.resetAndDestroy();
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
  t.equal(handshakes.failures.protocol, 4);
  t.ok(handshakes.failures.closed >= 1);
});

t.test('a client that begins handshakes too fast waits, and others do not', async (t) => {
  let now = 0;
  let told = 0;
  const handshakes = handshakesWith({ clock: () => now, perClient: 1, onTooFast: () => void told++ });
  const { port, bounds, clients } = await startBareServer(t, { handshakes });
  const from = { localAddress: '127.0.0.7' };
  for (let i = 0; i < 4; i++)
    t.equal((await sendTls(port, '/a', ca, from)).status, 200, 'four seconds at once');
  const fifth = sendTls(port, '/a', ca, from);
  await until(() => told === 1);
  t.equal((await sendTls(port, '/a', ca)).status, 200, 'another client is served meanwhile');
  const left = connected(t, port, '127.0.0.7', CLIENT_HELLO_BEGUN);
  await until(() => told === 2);
  left.destroy();
  now = 4000;
  t.equal((await fifth).status, 200, 'in the next four seconds');
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
  t.equal(handshakes.failures.pace, 0);
});

t.test('a handshake whose turn would come too late is closed', async (t) => {
  const handshakes = handshakesWith({ perClient: 1, timeoutMs: 3999 });
  const { port } = await startBareServer(t, { handshakes });
  for (let i = 0; i < 4; i++) t.equal((await sendTls(port, '/a', ca)).status, 200);
  await t.rejects(sendTls(port, '/a', ca), { code: 'ECONNRESET' });
  t.equal(handshakes.failures.pace, 1);
});
