import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import t from 'tap';
import { type Owner, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { KINDS, type Kind, startApplication } from '#test/support/kinds.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { send, startRawUpstream } from './exchange.ts';

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

function handshake(path = '/ws', more = ''): string {
  return (
    `GET ${path} HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n${more}\r\n`
  );
}

/** Builds a masked text frame, as clients send it. */
function frame(text: string): string {
  const mask = Buffer.from([1, 2, 3, 4]);
  const payload = Buffer.from(text).map((byte, i) => byte ^ (mask[i % 4] ?? 0));
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length]), mask, payload]).toString('latin1');
}

interface Echo {
  readonly origin: string;
  readonly sockets: readonly Socket[];
  requests: number;
}

/** Accepts every handshake, sends a greeting in the same write, and then echoes all bytes. */
async function startEcho(owner: Owner, kind: Kind): Promise<Echo> {
  const sockets: Socket[] = [];
  const { origin, server } = await startApplication(owner, kind, (_req, res) => res.end('plain'));
  server.on('upgrade', (req, socket: Socket, head) => {
    echo.requests++;
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    const accept = createHash('sha1')
      .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
      .digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Case: kept\r\nSec-WebSocket-Accept: ${accept}\r\n\r\nhello;`,
    );
    if (head.length > 0) socket.write(head);
    socket.pipe(socket);
  });
  const echo: Echo = { origin, sockets, requests: 0 };
  return echo;
}

/** Resolves once the connection has received this many bytes. */
async function bytes(connection: RawConnection, count: number): Promise<void> {
  await until(() => connection.received().length >= count, `${count} bytes`);
}

for (const kind of KINDS)
  t.test(`${kind}: 101: both directions, with early bytes of each, and with limit headers`, async (t) => {
    const echo = await startEcho(t, kind);
    const policies = policyFile('name: ws, route: GET /ws, identifier: ip, limit: 2, window: 366d');
    const { port, sample } = await startTestGateway(t, { upstream: echo, policies });

    const client = sendRaw(port, handshake() + frame('early'));
    const text = await client.until(/hello;[\s\S]*\x85/);
    t.match(text, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
    t.match(text, /\r\nConnection: upgrade\r\n/i);
    t.match(text, /\r\nUpgrade: websocket\r\n/i);
    t.match(text, /\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/);
    t.match(text, /\r\nX-Case: kept\r\n/);
    t.match(text, /\r\nx-ratelimit-limit: 2\r\nx-ratelimit-remaining: 1\r\n/);
    await client.until(new RegExp(`hello;${literally(frame('early'))}$`));
    client.socket.write(frame('later'), 'latin1');
    await client.until(new RegExp(`${literally(frame('early') + frame('later'))}$`));

    t.equal(echo.requests, 1);
    const allowed = sample('floodgate_policy_decisions_total', { policy: 'ws', decision: 'allowed' });
    t.equal(allowed, 1, 'counted once, as GET');
    client.socket.destroy();
  });

function literally(text: string): string {
  return text.replace(/[^\w]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

for (const kind of KINDS)
  t.test(`${kind}: 403: a refusal of the upstream arrives whole, and the connection closes`, async (t) => {
    const size = 3 * 1024 * 1024;
    const upstream = await startApplication(t, kind, () => undefined);
    upstream.server.on('upgrade', (_req, socket) => {
      socket.on('error', () => socket.destroy());
      socket.end(`HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`);
    });
    const { port } = await startTestGateway(t, { upstream });
    const text = await sendRaw(port, handshake()).ended();
    t.match(text.slice(0, 400), /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*X-Why: no\r\n/);
    t.equal(text.length - text.indexOf('\r\n\r\n') - 4, size);
  });

for (const kind of KINDS)
  t.test(`${kind}: a handshake never uses a connection that the upstream may be closing`, async (t) => {
    const seen: string[] = [];
    const counts = new Map<Socket, number>();
    const upstream = await startRawUpstream(
      t,
      (socket, text) => {
        const [last = ''] = /\S+(?= HTTP\/1\.1\r\n(?:[^\r]+\r\n)*\r\n$)/.exec(text) ?? [];
        const requests = (counts.get(socket) ?? 0) + 1;
        counts.set(socket, requests);
        seen.push(last);
        if (requests > 1 || last === '/never') socket.destroy();
        else socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      },
      kind,
    );
    const { port } = await startTestGateway(t, { upstream });
    for (const path of ['/a', '/b']) t.match(await sendRaw(port, handshake(path)).ended(), / 403 [\s\S]*no$/);
    t.match(await sendRaw(port, handshake('/never')).ended(), / 502 /);
    t.same(seen, ['/a', '/b', '/never']);
  });

for (const kind of KINDS)
  t.test(`${kind}: when the client leaves, the upstream sees the end`, async (t) => {
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const echo = await startEcho(t, kind);
      const { port } = await startTestGateway(t, { upstream: echo });
      const client = sendRaw(port, handshake());
      await client.until(/hello;/);
      client.socket[leave]();
      await until(
        () => echo.sockets[0]?.destroyed === true,
        `the upstream's socket is closed after ${leave}`,
      );
      await client.ended();
    }
  });

for (const kind of KINDS)
  t.test(`${kind}: when the upstream leaves, the client gets its last bytes and then the end`, async (t) => {
    const size = 2 * 1024 * 1024;
    const echo = await startEcho(t, kind);
    const { port } = await startTestGateway(t, { upstream: echo });
    const client = sendRaw(port, handshake());
    await client.until(/hello;/);
    client.socket.pause();
    const before = client.received().length;
    echo.sockets[0]?.end(Buffer.alloc(size, 'z'));
    await new Promise((resolve) => setImmediate(resolve));
    client.socket.resume();
    await bytes(client, before + size);
    t.equal((await client.ended()).length, before + size);
  });

for (const kind of KINDS)
  t.test(`${kind}: a client that leaves during its handshake ends the upstream call`, async (t) => {
    for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const seen: string[] = [];
      const upstream = await startRawUpstream(
        t,
        (_socket, text) => {
          seen.push(text);
        },
        kind,
      );
      const { port, origin } = await startTestGateway(t, { upstream });
      const client = sendRaw(port, handshake());
      await until(() => seen.length > 0, 'the handshake is with the upstream');
      client.socket[leave]();
      await until(() => upstream.sockets[0]?.destroyed === true, `aborted after ${leave}`);
      t.equal((await fetch(`${origin}/api/%00`)).status, 400, 'the gateway still answers');
    }
  });

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n';

for (const kind of KINDS) {
  t.test(`${kind}: 101 in any pieces, with early bytes before and after it is passed on`, async (t) => {
    const early = 'e'.repeat(300_000);
    for (const cut of [1, 12, SWITCH.length - 1, SWITCH.length, SWITCH.length + 7]) {
      const whole = SWITCH + early;
      const upstream = await startRawUpstream(
        t,
        (socket, text) => {
          if (!text.endsWith('\r\n\r\n')) return;
          socket.write(whole.slice(0, cut), () => setImmediate(() => socket.write(whole.slice(cut))));
        },
        kind,
      );
      const { port, sample } = await startTestGateway(t, { upstream });
      const client = sendRaw(port, handshake());
      const head = await client.until(/\r\n\r\n/);
      await bytes(client, head.indexOf('\r\n\r\n') + 4 + early.length);
      t.ok(client.received().endsWith(`\r\n\r\n${early}`), `cut after ${cut}`);
      const held = () => sample('floodgate_held', { bound: 'upgrades' });
      t.equal(held(), 1);
      upstream.sockets[0]?.destroy();
      await client.ended();
      await until(() => held() === 0, 'the tunnel is given back');
    }
  });

  t.test(`${kind}: both directions of a tunnel wait for their reader, and lose nothing`, async (t) => {
    const size = 4 * 1024 * 1024;
    let received = 0;
    const upstream = await startRawUpstream(
      t,
      (socket, text) => {
        received = text.length - text.indexOf('\r\n\r\n') - 4;
        if (received > 0) return;
        socket.write(SWITCH);
        socket.write(Buffer.alloc(size, 'd'));
        socket.pause();
      },
      kind,
    );
    const { port } = await startTestGateway(t, { upstream });
    const client = sendRaw(port, handshake());
    await client.until(/\r\n\r\n/);
    client.socket.pause();
    client.socket.write(Buffer.alloc(size, 'u'));
    await until(() => client.socket.writableLength > 0, 'the client waits');
    t.equal(received, 0);
    upstream.sockets[0]?.resume();
    await until(() => received === size, 'the upload arrives');
    client.socket.resume();
    await until(() => client.received().endsWith('d'.repeat(1000)), 'the download begins');
    await bytes(client, client.received().indexOf('\r\n\r\n') + 4 + size);
    client.socket.destroy();
  });

  t.test(`${kind}: a tunnel does not disturb the connections of other requests`, async (t) => {
    const { origin, server } = await startApplication(t, kind, (_req, res) => res.end('whole'));
    server.on('upgrade', (_req, socket) => {
      socket.on('error', () => socket.destroy());
      socket.write(SWITCH);
      socket.pipe(socket);
    });
    const { port } = await startTestGateway(t, { upstream: origin });
    t.equal(String((await send(port, '/')).body), 'whole');
    const client = sendRaw(port, handshake());
    await client.until(/\r\n\r\n/);
    for (let i = 0; i < 3; i++) t.equal(String((await send(port, '/')).body), 'whole');
    client.socket.write('ping');
    await client.until(/ping$/);
    client.socket.destroy();
  });
}
