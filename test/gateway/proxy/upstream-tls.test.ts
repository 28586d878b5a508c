/** TLS to the upstream: whom the gateway trusts, what it offers, and how long it waits. */
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcp } from 'node:net';
import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { startSockets, trusted } from '#test/support/kinds.ts';
import { listen } from '#test/support/listen.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

const HANDSHAKE = 'GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

t.test('https: checks the certificate against the upstream’s name, not the client’s Host', async (t) => {
  let connections = 0;
  const upstream = createTlsServer({ ...trusted(t), ALPNProtocols: ['http/1.1'] }, (req, res) =>
    res.end(`${req.headers.host} ${req.httpVersion}`),
  );
  upstream.on('secureConnection', () => connections++);
  const upstreamPort = await listen(t, upstream);
  for (const name of ['localhost', '127.0.0.1']) {
    const { port } = await startTestGateway(t, { upstream: `https://${name}:${upstreamPort}` });
    connections = 0;
    for (const host of ['app.example', 'other.example', 'localhost']) {
      const { status, body } = await send(port, '/', { headers: { host } });
      t.equal(status, 200, `${name} asked for as ${host}`);
      t.equal(body.toString(), `${host} 1.1`);
    }
    t.equal(connections, 1, 'another Host uses the same connection');
  }
});

t.test('502: a certificate of another name, or of an unknown authority, gets no request', async (t) => {
  const named = trusted(t, 'DNS:other.test,IP:127.0.0.2');
  const unknown = createAuthority(t).issue('upstream', 'DNS:localhost,IP:127.0.0.1');
  const strange = { cert: readFileSync(unknown.cert), key: readFileSync(unknown.key) };
  for (const identity of [named, strange]) {
    let requests = 0;
    const count = (): void => {
      requests++;
    };
    const { port: upstreamPort } = await startSockets(t, 'https', (s) => void s.on('data', count), identity);
    for (const host of ['localhost', '127.0.0.1']) {
      const { port } = await startBareServer(t, { origin: `https://${host}:${upstreamPort}` });
      t.equal((await send(port, '/', { headers: { host: 'other.test' } })).status, 502);
      t.match(await sendRaw(port, HANDSHAKE).ended(), /^HTTP\/1\.1 502 /);
    }
    t.equal(requests, 0);
  }
});

t.test('offers HTTP/1.1 only, names the host but no address, and resumes its sessions', async (t) => {
  const seen: unknown[] = [];
  const { port: upstreamPort } = await startSockets(
    t,
    'https',
    (socket) => {
      const { alpnProtocol, servername } = socket as TLSSocket;
      seen.push([alpnProtocol, servername || '', (socket as TLSSocket).isSessionReused()]);
      socket.once('data', () => socket.end(REPLY.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')));
    },
    { ...trusted(t), ALPNProtocols: ['h2', 'http/1.1'] },
  );
  for (const host of ['localhost', '127.0.0.1']) {
    const { port } = await startBareServer(t, { origin: `https://${host}:${upstreamPort}` });
    for (let i = 0; i < 2; i++)
      t.equal((await send(port, '/', { headers: { host: 'app.test' } })).status, 200);
    const name = host === 'localhost' ? host : '';
    t.strictSame(seen.splice(0), [
      ['http/1.1', name, false],
      ['http/1.1', name, true],
    ]);
  }
});

t.test('502: an upstream that speaks HTTP/2 only', async (t) => {
  const { origin } = await startSockets(t, 'https', () => undefined, {
    ...trusted(t),
    ALPNProtocols: ['h2'],
  });
  const { port } = await startBareServer(t, { origin });
  t.equal((await send(port, '/')).status, 502);
});

t.test('504: the time for a connection covers the handshake; 502 if it breaks off', async (t) => {
  let connections = 0;
  let isOpen = true;
  const server = createTcp((socket) => {
    connections++;
    socket.on('error', () => socket.destroy()).resume();
    if (!isOpen) socket.once('data', () => socket.end('no TLS'));
    t.teardown(() => socket.destroy());
  });
  const upstreamPort = await listen(t, server);
  const { port, upstream } = await startBareServer(t, {
    origin: `https://127.0.0.1:${upstreamPort}`,
    timeoutMs: 300,
  });
  t.equal((await send(port, '/')).status, 504);
  t.match(await sendRaw(port, HANDSHAKE).ended(), /^HTTP\/1\.1 504 /);
  t.equal(connections, 2);
  isOpen = false;
  const other = await startBareServer(t, { origin: `https://127.0.0.1:${upstreamPort}` });
  t.equal((await send(other.port, '/')).status, 502);
  t.match(await sendRaw(other.port, HANDSHAKE).ended(), /^HTTP\/1\.1 502 /);
  t.equal(connections, 4, 'no GET is sent twice');
  await until(() => upstream.bounds.upstream_connections.held === 0, 'everything is given back');
});
