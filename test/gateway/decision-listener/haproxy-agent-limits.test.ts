/** HAProxy's agent with short times: hostile peers, and peers that stop sending or reading. */
import type { Socket } from 'node:net';
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openConnection } from '#gateway/decision-listener/haproxy-agent.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { Millis } from '#shared/clock.ts';
import { policyFile } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import {
  frame,
  greetedClient,
  hello,
  notify,
  question,
  type SpopClient,
  settled,
  spopClient,
  withLength,
} from '#test/support/spop-client.ts';
import { until } from '#test/support/until.ts';
import { type BareServer, startBareServer } from '../proxy/bare-server.ts';

const DISCONNECT = 102;
const DENIED = withLength(notify([1, 1], question('/ip/a', '192.0.2.1')));
/** Answered with 400, and its reason is noted. */
const SMALLEST = withLength(frame(3, [1, 1], Buffer.from([0, 0])));

interface Agent extends BareServer {
  /** In the order in which they were accepted. */
  readonly connections: readonly ClientConnection[];
  /** The gateway's socket of a connection. */
  socket(i: number): Socket;
  /** Reasons for which the agent ended connections or answered 400. */
  readonly reasons: readonly string[];
  client(): Promise<SpopClient>;
}

async function startAgent(
  t: Test,
  peerMs: Millis,
  onReason: (count: number) => void = () => {},
): Promise<Agent> {
  const connections: ClientConnection[] = [];
  const reasons: string[] = [];
  const server = await startBareServer(t, {
    origin: 'http://127.0.0.1:9',
    policies: policyFile('name: ip, route: "GET /ip/*", identifier: ip, limit: 3, window: 366d'),
    trustedProxies: 'loopback',
    decisionServer: (parts) => {
      const onBadRequest = (reason: string): void => onReason(reasons.push(reason));
      const options = { parts, accessLog: null, isCredentialProven: false, onBadRequest, peerMs };
      return {
        keepAliveMs: 60_000,
        headerBytesMax: 65_536,
        begin({ res }) {
          res.writeHead(200, ['Content-Length', '0']);
          res.end();
        },
        open(connection, toHttp) {
          connections.push(connection);
          openConnection(connection, options, toHttp);
        },
      };
    },
  });
  const socket = (i: number): Socket => {
    const connection = connections[i];
    if (connection === undefined) throw new Error(`there is no connection ${i}`);
    return connection.socket;
  };
  return { ...server, connections, socket, reasons, client: () => greetedClient(t, server.port) };
}

t.test('garbage gets a DISCONNECT with a reason, and other connections stay open', async (t) => {
  const agent = await startAgent(t, 60_000);
  const other = await agent.client();
  const whole = notify([1, 1], question('/elsewhere', '192.0.2.1'));
  const length = (bytes: number): Buffer => withLength(Buffer.alloc(bytes)).subarray(0, 4);
  const cases: readonly (readonly [string, readonly Buffer[], number])[] = [
    ['a huge frame', [length(65_537)], 3],
    ['the hugest', [length(2 ** 24 - 1)], 3],
    ['a short frame', [withLength(whole.subarray(0, 6))], 4],
    ['an empty frame', [length(0)], 3],
    ['another frame before the hello', [withLength(frame(77, [0, 0], Buffer.alloc(0)))], 4],
    ['no hello', [withLength(whole)], 4],
    ['two hellos', [hello(), hello()].map(withLength), 4],
    ['a frame above what was agreed', [withLength(hello()), length(16_381)], 3],
    ['a fragment', [withLength(hello()), withLength(Buffer.from(whole).fill(0, 4, 5))], 10],
    ['a cut message', [withLength(hello()), withLength(whole.subarray(0, 40))], 4],
    ['zeros', [Buffer.alloc(1_000_000)], 3],
  ];
  for (const [name, pieces, status] of cases) {
    const { socket, received, isClosed } = spopClient(t, agent.port);
    // The client ends its side, so that it is told so too if the agent accepts the garbage.
    socket.end(Buffer.concat(pieces));
    await until(() => received.at(-1)?.type === DISCONNECT || isClosed());
    t.match(received.at(-1), { type: DISCONNECT, items: { 'status-code': status, message: /./ } }, name);
    t.ok(agent.connections.at(-1)?.socket.writableEnded, `${name}: the connection ends`);
    socket.resetAndDestroy();
  }
  const http = sendRaw(agent.port, '\x01\0\0\0');
  t.match(await http.ended(), /^HTTP\/1\.1 400 /, 'a first byte of another protocol is read as HTTP');
  t.equal((await other.ask(question('/elsewhere', '192.0.2.1'))).status, 200);
  other.socket.resetAndDestroy();
  if (t.passing()) await until(() => agent.bounds.connections.held === 0);
});

t.test('cuts clients that are silent, send half a frame or do not read, and keeps idle ones', async (t) => {
  const peerMs = 2000;
  const agent = await startAgent(t, peerMs);
  const idle = await agent.client();
  const deaf = await agent.client();
  deaf.socket.pause();
  deaf.socket.write(Buffer.concat(Array<Buffer>(20_000).fill(DENIED)));
  await settled(idle, () => agent.socket(1).bytesRead);
  const isFull = (i: number): boolean => agent.socket(i).writableNeedDrain || !agent.socket(i).writable;
  t.ok(isFull(1), 'the agent stops reading from a client that does not read');
  const lastUnread = await agent.client();
  // As if the window were full: all is read, so nothing that comes tells the agent to look again.
  agent.socket(2).cork();
  lastUnread.socket.write(Buffer.concat(Array<Buffer>(300).fill(DENIED)));
  await settled(idle, () => agent.socket(2).bytesRead);
  t.ok(isFull(2));
  const greeting = withLength(hello());
  const half = DENIED.subarray(0, 20);
  const beginnings = [
    Buffer.alloc(0),
    Buffer.from([0]),
    Buffer.concat([greeting, DENIED.subarray(0, 2)]),
    Buffer.concat([greeting, half]),
    Buffer.concat([greeting, half]),
    Buffer.concat([greeting, Buffer.from([0, 0, 60, 0])]),
  ];
  const late = beginnings.map((bytes) => {
    const client = spopClient(t, agent.port);
    client.socket.write(bytes);
    return client;
  });
  await until(() => agent.connections.length === 3 + late.length);
  // They may be accepted in another order.
  const cut = late.map(({ socket }) => {
    const found = agent.connections.find((connection) => connection.socket.remotePort === socket.localPort);
    if (found === undefined) throw new Error('a connection was closed too early');
    return found.socket;
  });
  const hasRead = (i: number, { length }: Buffer): boolean => (cut[i]?.bytesRead ?? 0) >= length;
  await until(() => beginnings.every((bytes, i) => hasRead(i, bytes)));
  // Timers of the same length end in the order in which they began: the agent's, this one, and that of the next frame.
  const passed = delay(peerMs);
  const next = Buffer.concat([DENIED.subarray(20), half]);
  late[4]?.socket.write(next);
  const dripping = setInterval(() => late[5]?.socket.write('x'), 10);
  t.teardown(() => clearInterval(dripping));
  await until(() => hasRead(4, Buffer.concat([greeting, half, next])));
  await passed;
  const names = [
    'silent',
    'no HELLO',
    'half a length',
    'half a frame',
    'half of the next frame',
    'byte by byte',
  ];
  t.strictSame(
    names.filter((_, i) => cut[i]?.destroyed === false && !cut[i]?.writableEnded),
    ['half of the next frame'],
    'only half of the next frame is still open',
  );
  t.ok(agent.socket(1).writableEnded, 'a client that does not read is cut');
  t.ok(agent.socket(2).writableEnded, 'a client that does not read its last answers is cut');
  if (t.passing()) await until(() => late[3]?.received.at(-1)?.type === DISCONNECT);
  t.match(late[3]?.received.at(-1), { type: DISCONNECT, items: { 'status-code': 2 } });
  for (const { socket } of [deaf, lastUnread, ...late]) socket.resetAndDestroy();
  // Corked bytes would keep it open.
  agent.socket(2).destroy();
  if (t.passing()) await until(() => agent.bounds.connections.held === 1);
  t.equal((await idle.ask(question('/elsewhere', '192.0.2.1'))).status, 200);
});

t.test('a client that reads late gets all answers', async (t) => {
  const agent = await startAgent(t, 10_000);
  const [other, late] = [await agent.client(), await agent.client()];
  late.socket.pause();
  const requests = Buffer.concat(Array<Buffer>(20_000).fill(DENIED));
  late.socket.write(requests);
  const read = await settled(other, () => agent.socket(1).bytesRead);
  t.ok(read < requests.length, `read ${read} of ${requests.length} bytes until the window is full`);
  late.socket.resume();
  t.equal(await settled(other, () => late.received.length), 20_001);
});

t.test('a client that leaves before its requests are read is not logged as refused', async (t) => {
  const agent = await startAgent(t, 1000);
  const gone = await agent.client();
  gone.socket.write(Buffer.concat([...Array<Buffer>(3000).fill(DENIED), Buffer.from([0])]));
  gone.socket.resetAndDestroy();
  await until(() => agent.bounds.connections.held === 0);
  t.ok(agent.socket(0).destroyed);
  const later = spopClient(t, agent.port);
  await until(later.isClosed);
  t.strictSame(agent.reasons, []);
});

t.test('answers at most 1,024 small requests in one event-loop tick', async (t) => {
  let most = 0;
  let inThisTurn = 0;
  const agent = await startAgent(t, 60_000, () => {
    if (inThisTurn === 0) void turn().then(() => (inThisTurn = 0));
    most = Math.max(most, ++inThisTurn);
  });
  const [other, { socket, received }] = [await agent.client(), await agent.client()];
  socket.write(Buffer.concat(Array<Buffer>(20_000).fill(SMALLEST)));
  t.equal(await settled(other, () => received.length), 20_001);
  t.ok(most <= 1024, `${most} in one turn`);
});

t.test('a drain answers requests that have arrived, and closes silent connections', async (t) => {
  const agent = await startAgent(t, 60_000, (count) => {
    if (count === 1 || count === 5000) setImmediate(() => agent.connections[1]?.closeIdle?.());
  });
  const [other, busy] = [await agent.client(), await agent.client()];
  busy.socket.write(Buffer.concat(Array<Buffer>(20_000).fill(SMALLEST)));
  await settled(other, () => busy.received.length);
  const answered = busy.received.length - 2;
  t.equal(answered, agent.reasons.length);
  t.ok(answered >= 5000 && answered < 20_000, `${answered} requests`);
  t.match(busy.received.at(-1), { type: DISCONNECT, items: { 'status-code': 0 } });

  const silent = spopClient(t, agent.port);
  await until(() => agent.connections.length === 3);
  agent.connections[2]?.closeIdle?.();
  t.ok(agent.socket(2).destroyed, 'a silent connection is closed');
  silent.socket.destroy();
});
