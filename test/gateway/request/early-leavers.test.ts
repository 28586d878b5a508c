/** Requests of clients that leave before the reply count, and keep their places until the application has answered. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const LIMIT = 3;
const CLIENTS = 12;
const POLICIES = policyFile(
  `name: failures, route: "POST /login", identifier: ip, limit: ${LIMIT}, window: 366d, count: failure`,
  `name: successes, route: "POST /codes", identifier: ip, limit: ${LIMIT}, window: 366d, count: success`,
  `name: slow, route: "* /slow/*", identifier: ip, concurrency: ${LIMIT}`,
);

const STORES: Readonly<Record<string, (t: Test) => Promise<Record<string, string>>>> = {
  memory: async () => ({}),
  Redis: async (t) => {
    const redis = await startRedis(t);
    return { GATEWAY_REDIS_URL: `${redis.url}?timeout_ms=2000` };
  },
};

interface Started {
  readonly gateway: TestGateway;
  readonly origin: string;
  readonly port: number;
  /** All requests that reached the application. */
  readonly arrived: { readonly req: IncomingMessage; readonly res: ServerResponse }[];
  /** Protocol switches that the application has not answered. */
  readonly upgrades: Duplex[];
  /** Number of open client connections. */
  connections(): number;
}

/** The application answers `/now` paths, and leaves everything else to the test. */
async function started(t: Test, env: Record<string, string>): Promise<Started> {
  const arrived: Started['arrived'] = [];
  const upgrades: Duplex[] = [];
  const application = await startUpstream(t, (req, res) => {
    if (req.url === '/slow/now') res.end('done');
    else arrived.push({ req, res });
  });
  application.server.on('upgrade', (_req, socket: Duplex) => {
    socket.on('error', () => undefined).on('end', () => socket.destroy());
    upgrades.push(socket);
    t.teardown(() => socket.destroy());
  });
  const gateway = await startTestGateway(t, { upstream: application, policies: POLICIES, env });
  const connections = () => gateway.sample('floodgate_held', { bound: 'connections' });
  return { gateway, origin: gateway.origin, port: gateway.port, arrived, upgrades, connections };
}

interface Visitor {
  readonly socket: Socket;
  reply: string;
}

async function begin(t: Test, port: number, head: string, body = ''): Promise<Visitor> {
  const socket = connect(port, '127.0.0.1');
  const visitor: Visitor = { socket, reply: '' };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    visitor.reply += String(chunk);
  });
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  socket.write(`${head.replaceAll('\n', '\r\n')}\r\nHost: a\r\n\r\n${body}`);
  return visitor;
}

/** Clients come one after the other. Each leaves when its request has reached the application or was refused. */
async function comeAndLeave(t: Test, started: Started, head: string, body = ''): Promise<string[]> {
  const refusals: string[] = [];
  const reached = (): number => started.arrived.length + started.upgrades.length;
  const before = started.connections();
  for (let i = 0; i < CLIENTS; i++) {
    const had = reached();
    const visitor = await begin(t, started.port, head, body);
    await until(() => reached() > had || visitor.reply !== '');
    visitor.socket.destroy();
    if (visitor.reply !== '') refusals.push(visitor.reply.slice(0, 12));
    await until(() => started.connections() === before);
  }
  return refusals;
}

const DENIED = Array(CLIENTS - LIMIT).fill('HTTP/1.1 429');

/** Whether all places are free. */
async function isFree({ origin }: Started): Promise<boolean> {
  const reply = await fetch(`${origin}/slow/now`);
  await reply.arrayBuffer();
  return reply.status === 200 && reply.headers.get('ratelimit')?.includes(`"slow";r=${LIMIT - 1}`) === true;
}

for (const [name, environment] of Object.entries(STORES)) {
  t.test(`${name}: counts the request of a client that leaves`, async (t) => {
    await insideLongWindow();
    for (const path of ['/login', '/codes']) {
      const app = await started(t, await environment(t));
      t.strictSame(await comeAndLeave(t, app, `POST ${path} HTTP/1.1\nContent-Length: 0`), DENIED, path);
      t.equal(app.arrived.length, LIMIT, `${path}: the limit reached the application`);
    }
  });

  t.test(`${name}: a broken upload counts, but not if it never reached the application`, async (t) => {
    await insideLongWindow();
    for (const path of ['/login', '/codes']) {
      const app = await started(t, await environment(t));
      for (let i = 0; i < CLIENTS; i++) {
        // A small body is received before its request is sent.
        const visitor = await begin(t, app.port, `POST ${path} HTTP/1.1\nContent-Length: 10`, 'x');
        await until(() => app.connections() === 1);
        visitor.socket.destroy();
        await until(() => app.connections() === 0);
      }
      const large = `POST ${path} HTTP/1.1\nContent-Length: 100000`;
      t.strictSame(await comeAndLeave(t, app, large, 'the beginning'), DENIED, path);
      t.equal(app.arrived.length, LIMIT, `${path}: the limit reached the application`);
    }
  });

  t.test(`${name}: a client that leaves holds its place until the application is done`, async (t) => {
    const app = await started(t, await environment(t));
    const { arrived } = app;

    for (const head of ['GET /slow/hang HTTP/1.1', 'POST /slow/hang HTTP/1.1\nContent-Length: 0']) {
      t.strictSame(await comeAndLeave(t, app, head), DENIED, `clients that left hold the places: ${head}`);
      t.equal(arrived.length, LIMIT, 'the application never has more than the limit at once');
      for (const { res } of arrived.splice(0, 1)) res.end('nobody reads this');
      for (const { req } of arrived.splice(0, 1)) req.socket.destroy();
      for (const { res } of arrived.splice(0)) res.writeHead(204).end();
      await until(() => isFree(app));
    }

    t.test('an endless reply frees its place when it begins', async () => {
      await comeAndLeave(t, app, 'GET /slow/events HTTP/1.1');
      const closed = arrived.map(({ res }) => once(res, 'close'));
      for (const { res } of arrived.splice(0)) {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.write('data: 1\n\n');
      }
      await Promise.all(closed);
      await until(() => isFree(app));
    });

    t.test('a broken upload frees its place when the reply ends', async (t) => {
      for (const length of ['Content-Length: 100000', 'Transfer-Encoding: chunked']) {
        const body = length.startsWith('Transfer') ? '5\r\nhello\r\n' : 'hello';
        t.strictSame(
          await comeAndLeave(t, app, `POST /slow/upload HTTP/1.1\n${length}`, body),
          DENIED,
          length,
        );
        for (const { res } of arrived.splice(0)) res.end('enough');
        await until(() => isFree(app));
      }
    });

    t.test('a protocol switch frees its place when the application answers', async (t) => {
      const head = 'GET /slow/socket HTTP/1.1\nConnection: upgrade\nUpgrade: websocket';
      t.strictSame(await comeAndLeave(t, app, head), DENIED);
      const closed = app.upgrades.map((socket) => once(socket, 'close'));
      for (const socket of app.upgrades.splice(0)) {
        socket.resume();
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
      }
      await Promise.all(closed);
      await until(() => isFree(app));
    });
  });

  t.test(`${name}: the place of a client that left is freed after the upstream timeout`, async (t) => {
    const app = await started(t, { ...(await environment(t)), GATEWAY_UPSTREAM_TIMEOUT_MS: '3000' });
    for (const [head, body] of [
      ['GET /slow/hang HTTP/1.1', ''],
      ['POST /slow/hang HTTP/1.1\nContent-Length: 100000', 'the beginning'],
    ] as const) {
      const visitor = await begin(t, app.port, head, body);
      await until(() => app.arrived.length === 1);
      visitor.socket.destroy();
      const [{ req }] = app.arrived.splice(0) as [Started['arrived'][number]];
      await until(() => req.socket.destroyed);
      await until(() => isFree(app));
    }
  });
}

t.test('a reply that the gateway has no room for counts by its status', async (t) => {
  await insideLongWindow();
  const app = await started(t, { GATEWAY_STREAMS: '1' });
  const visitors: Visitor[] = [];
  for (let i = 0; i < CLIENTS; i++) {
    const visitor = await begin(t, app.port, 'POST /codes HTTP/1.1\nContent-Length: 0');
    visitors.push(visitor);
    await until(() => app.arrived.length > i || visitor.reply !== '');
    app.arrived[i]?.res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    await until(() => visitor.reply !== '');
  }
  t.equal(app.arrived.length, LIMIT);
  const refusals = visitors.filter(({ reply }) => reply.includes('x-gateway-ratelimited: true'));
  t.equal(refusals.length, CLIENTS - LIMIT, 'the policy refuses the others');
});
