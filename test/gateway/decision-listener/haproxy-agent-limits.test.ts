/** HAProxy's agent with short times: hostile peers, and peers that stop sending or reading. */
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openConnection } from '#gateway/decision-listener/haproxy-agent.ts';
import type { Millis } from '#shared/clock.ts';
import { policyFile } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import {
  frame,
  hello,
  notify,
  question,
  type SpopClient,
  spopClient,
  withLength,
} from '#test/support/spop-client.ts';
import { until } from '#test/support/until.ts';
import { type BareServer, startBareServer } from '../proxy/bare-server.ts';

const DISCONNECT = 102;
const DENIED = withLength(notify([1, 1], question('/ip/a', '192.0.2.1')));

interface Agent extends BareServer {
  /** The gateway's sockets, in the order in which they were accepted. */
  readonly sockets: readonly Socket[];
  /** Reasons for which the agent ended connections. */
  readonly reasons: readonly string[];
  /** Said hello already. */
  client(): Promise<SpopClient>;
}

async function startAgent(t: Test, peerMs: Millis): Promise<Agent> {
  const sockets: Socket[] = [];
  const reasons: string[] = [];
  const server = await startBareServer(t, {
    origin: 'http://127.0.0.1:9',
    policies: policyFile('name: ip, route: "GET /ip/*", identifier: ip, limit: 3, window: 366d'),
    trustedProxies: 'loopback',
    decisionServer: (parts) => {
      const onBadRequest = (reason: string): void => void reasons.push(reason);
      const options = { parts, accessLog: null, isCredentialProven: false, onBadRequest, peerMs };
      return {
        keepAliveMs: 60_000,
        headerBytesMax: 65_536,
        begin({ res }) {
          res.writeHead(200, ['Content-Length', '0']);
          res.end();
        },
        open(connection, toHttp) {
          sockets.push(connection.socket);
          openConnection(connection, options, toHttp);
        },
      };
    },
  });
  const client = async (): Promise<SpopClient> => {
    const spop = spopClient(t, server.port);
    spop.send(hello());
    if ((await spop.frames(1)).length === 0) throw new Error('the agent did not answer the HELLO');
    return spop;
  };
  return { ...server, sockets, reasons, client };
}

t.test('garbage gets a DISCONNECT that says why; others go on', async (t) => {
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
    t.ok(agent.sockets.at(-1)?.writableEnded, `${name}: the connection ends`);
    socket.resetAndDestroy();
  }
  const http = sendRaw(agent.port, '\x01\0\0\0');
  t.match(await http.ended(), /^HTTP\/1\.1 400 /, 'what begins with another byte is HTTP');
  t.equal((await other.ask(question('/elsewhere', '192.0.2.1'))).status, 200);
  other.socket.resetAndDestroy();
  await until(() => agent.bounds.connections.held === 0);
});

t.test('who is silent, sends half a frame or reads no answers is cut; who is only idle is not', async (t) => {
  const agent = await startAgent(t, 1000);
  const idle = await agent.client();
  const deaf = await agent.client();
  deaf.socket.pause();
  deaf.socket.write(Buffer.concat(Array<Buffer>(20_000).fill(DENIED)));
  const unread = agent.sockets[1];
  await until(
    () => unread?.writableNeedDrain === true,
    'the window of the client that reads nothing is full',
  );
  const lastUnread = await agent.client();
  const quiet = agent.sockets[2];
  // As if the window were full: all is read, so nothing that comes tells the agent to look again.
  quiet?.cork();
  lastUnread.socket.write(Buffer.concat(Array<Buffer>(300).fill(DENIED)));
  await until(() => quiet?.writableNeedDrain === true);
  const silent = spopClient(t, agent.port);
  const half = await agent.client();
  half.socket.write(DENIED.subarray(0, 20));
  const prefix = await agent.client();
  prefix.socket.write(Buffer.from([0, 0]));
  const noHello = spopClient(t, agent.port);
  noHello.socket.write(Buffer.from([0]));
  const open = [silent, half, prefix, noHello];
  await until(() =>
    open.every(({ isClosed, received }) => isClosed() || received.at(-1)?.type === DISCONNECT),
  );
  for (const { received } of open.slice(1))
    t.match(received.at(-1), { type: DISCONNECT, items: { 'status-code': 2 } });
  t.ok(unread?.writableEnded, 'the client that reads nothing is cut before those that came after it');
  t.ok(quiet?.writableEnded, 'and so is one that does not read the last answers');
  t.equal(agent.reasons.length, 5);
  for (const { socket } of [deaf, lastUnread, ...open]) socket.resetAndDestroy();
  // Corked bytes would keep it open.
  quiet?.destroy();
  await until(() => agent.bounds.connections.held === 1);
  t.equal((await idle.ask(question('/elsewhere', '192.0.2.1'))).status, 200);
});

t.test('who leaves with requests unread is not blamed later', async (t) => {
  const agent = await startAgent(t, 1000);
  const gone = await agent.client();
  const socket = agent.sockets[0];
  gone.socket.write(Buffer.concat([...Array<Buffer>(3000).fill(DENIED), Buffer.from([0])]));
  gone.socket.resetAndDestroy();
  await until(() => agent.bounds.connections.held === 0);
  t.ok(socket?.destroyed);
  const later = spopClient(t, agent.port);
  await until(later.isClosed);
  t.strictSame(agent.reasons, []);
});

t.test('a burst of the smallest requests leaves turns to others', async (t) => {
  const agent = await startAgent(t, 60_000);
  const { socket, frames, isClosed } = await agent.client();
  const smallest = withLength(frame(3, [1, 1], Buffer.from([0, 0])));
  socket.write(Buffer.concat(Array<Buffer>(20_000).fill(smallest)));
  let most = 0;
  let before = 0;
  while (agent.reasons.length < 20_000 && !isClosed()) {
    await turn();
    most = Math.max(most, agent.reasons.length - before);
    before = agent.reasons.length;
  }
  t.ok(most <= 1024, `${most} in one turn`);
  t.equal((await frames(20_001)).length, 20_001);
});
