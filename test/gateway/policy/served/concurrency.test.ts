/**
 * Tests requests in flight over real connections: however a request ends, its place is released exactly once. What is told of
 * the limit is in test/policies/concurrency.yaml.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { EACH_STORE } from '#test/support/stores.ts';
import { until } from '#test/support/until.ts';

const LIMIT = 3;
const POLICIES = policyFile(
  `name: slow, route: "* /slow/*", identifier: ip, concurrency: ${LIMIT}`,
  'name: all, route: "* /*", identifier: ip, limit: 100000, window: 366d',
);

interface Started {
  readonly origin: string;
  readonly port: number;
  /** Requests that the application has and has not answered. */
  readonly open: { readonly req: IncomingMessage; readonly res: ServerResponse }[];
  readonly tunnels: Duplex[];
}

async function started(t: Test, env: Record<string, string>, upstream?: string): Promise<Started> {
  const open: Started['open'] = [];
  const tunnels: Duplex[] = [];
  const application = await startUpstream(t, (req, res) => {
    if (req.url === '/slow/now' || req.url === '/other') res.end('done');
    else open.push({ req, res });
  });
  application.server.on('upgrade', (req, socket: Duplex) => {
    if (req.url === '/slow/refused') {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno');
      return;
    }
    tunnels.push(socket);
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.resume();
    t.teardown(() => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const gateway = await startTestGateway(t, {
    upstream: upstream ?? application.origin,
    policies: POLICIES,
    env,
  });
  return { ...gateway, open, tunnels };
}

/** Sends a request on a connection of its own. */
async function begin(t: Test, port: number, head: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(`${head.replaceAll('\n', '\r\n')}\r\n\r\n`);
  return socket;
}

const HANG = 'GET /slow/hang HTTP/1.1\nHost: a';

async function fill(t: Test, { port, open }: Started, head = HANG): Promise<Socket[]> {
  const before = open.length;
  const sockets = await Promise.all(Array.from({ length: LIMIT }, () => begin(t, port, head)));
  await until(() => open.length === before + LIMIT);
  return sockets;
}

/** Whether all places are free. */
async function isFree({ origin }: Started): Promise<boolean> {
  const reply = await fetch(`${origin}/slow/now`);
  await reply.arrayBuffer();
  return reply.status === 200 && reply.headers.get('ratelimit')?.includes(`"slow";r=${LIMIT - 1}`) === true;
}

for (const [name, environment] of Object.entries(EACH_STORE)) {
  t.test(name, async (t) => {
    const gateway = await started(t, await environment(t));
    const { origin, port, open } = gateway;

    t.test('a client that leaves during the reply holds its place until then', async (t) => {
      const sockets = await fill(t, gateway);
      for (const { res } of open.splice(0)) res.write('the beginning');
      await Promise.all(sockets.map((socket) => once(socket, 'data')));
      t.equal((await fetch(`${origin}/slow/now`)).status, 429);
      for (const socket of sockets) socket.destroy();
      await until(() => isFree(gateway));
    });

    t.test('frees the place of a connection that the application closes', async (t) => {
      await fill(t, gateway, HANG.replace('GET', 'POST'));
      for (const { req } of open.splice(0)) req.socket.destroy();
      await until(() => isFree(gateway));
      await fill(t, gateway);
      for (const { req, res } of open.splice(0)) {
        res.writeHead(200, { 'content-length': 100 });
        res.write('not all', () => req.socket.destroy());
      }
      await until(() => isFree(gateway));
    });

    t.test('a reply while the body still arrives frees the place', async (t) => {
      const head = 'POST /slow/hang HTTP/1.1\nHost: a\nContent-Length: 1000000';
      const sockets = await fill(t, gateway, `${head}\n\nthe beginning`);
      for (const { res } of open.splice(0)) res.writeHead(413, { connection: 'close' }).end('too large');
      await Promise.all(sockets.map((socket) => once(socket, 'data')));
      await until(() => isFree(gateway));
    });

    t.test('a WebSocket has its place until either side closes it', async (t) => {
      const head = `GET /slow/socket HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13`;
      for (const side of ['client', 'application']) {
        const sockets = await Promise.all(Array.from({ length: LIMIT }, () => begin(t, port, head)));
        await Promise.all(sockets.map((socket) => once(socket, 'data')));
        t.equal((await fetch(`${origin}/slow/now`)).status, 429, side);
        for (const socket of side === 'client' ? sockets : gateway.tunnels) socket.destroy();
        await until(() => isFree(gateway));
        gateway.tunnels.splice(0);
      }
    });

    t.test('an upgrade request that gets a normal reply frees the place', async (t) => {
      for (let i = 0; i < 2 * LIMIT; i++) {
        const socket = await begin(
          t,
          port,
          'GET /slow/refused HTTP/1.1\nHost: a\nConnection: upgrade\nUpgrade: websocket',
        );
        const [reply] = await once(socket, 'data');
        t.match(String(reply), /^HTTP\/1\.1 403 /);
        socket.destroy();
      }
      await until(() => isFree(gateway));
    });
  });

  t.test(`${name}: 502 and 504 free their places`, async (t) => {
    const env = await environment(t);
    const gone = await started(t, env, `http://127.0.0.1:${await freePort()}`);
    for (let i = 0; i < 3 * LIMIT; i++) t.equal((await fetch(`${gone.origin}/slow/now`)).status, 502);
    const slow = await started(t, { ...(await environment(t)), GATEWAY_UPSTREAM_TIMEOUT_MS: '1000' });
    const replies = await Promise.all(Array.from({ length: LIMIT }, () => fetch(`${slow.origin}/slow/hang`)));
    t.strictSame(
      replies.map(({ status }) => status),
      [504, 504, 504],
    );
    await until(() => isFree(slow));
  });
}
