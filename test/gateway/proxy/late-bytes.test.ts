/** Bytes that an upstream sends behind its reply never become the reply to another request. */
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { KINDS, type Kind, startSockets } from '#test/support/kinds.ts';
import { seededRandom } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

const FOREIGN = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nforeign';
const LENGTH = `Content-Length: ${FOREIGN.length}`;

/** What the upstream says before the late bytes. A reply to HEAD is always the last one of its connection. */
const REPLIES: Readonly<Record<string, string>> = {
  'HEAD 200 length': `200 OK\r\n${LENGTH}`,
  'HEAD 200 chunked': '200 OK\r\nTransfer-Encoding: chunked',
  'HEAD 200 silent': '200 OK\r\nX-Other: 1',
  'HEAD 404 empty': '404 Not Found\r\nContent-Length: 0',
  'GET 204 length': `204 No Content\r\n${LENGTH}`,
  'GET 204 chunked': '204 No Content\r\nTransfer-Encoding: chunked',
  'GET 304 length': `304 Not Modified\r\n${LENGTH}`,
  'GET 304 chunked': '304 Not Modified\r\nTransfer-Encoding: chunked',
};
const DELAYS_MS = [0, 1, 5, 50];

interface Lenient {
  readonly origin: string;
  readonly sockets: readonly Socket[];
  /** Number of replies whose late bytes are still to come. */
  readonly due: () => number;
  /** Whether the reply to `/turns/N` may begin. */
  isReady: () => boolean;
}

/**
 * An upstream that sends late bytes and then goes on with the connection. Answers `/late/MS/KIND`, `/turns/N` with late
 * bytes after N turns of the event loop, and everything else with its path.
 */
async function startLenient(t: Test, kind: Kind): Promise<Lenient> {
  let due = 0;
  const lenient: Lenient = { origin: '', sockets: [], due: () => due, isReady: () => true };
  const late = (socket: Socket): void => {
    due--;
    if (!socket.destroyed) socket.write(FOREIGN, 'latin1');
  };
  const serve = (socket: Socket): void => {
    socket.setNoDelay(true);
    let text = '';
    socket.on('data', async (bytes) => {
      text += bytes.toString('latin1');
      const [whole, path = '', length = '0'] =
        /^[A-Z]+ (\S+) HTTP[\s\S]*?(?:\r\nContent-Length: (\d+)[\s\S]*?)?\r\n\r\n/i.exec(text) ?? [];
      if (whole === undefined || text.length < whole.length + Number(length)) return;
      text = '';
      const [, action, number = '0', kind = ''] = path.split('/');
      if (action === 'late') {
        due++;
        socket.write(`HTTP/1.1 ${REPLIES[decodeURIComponent(kind)]}\r\n\r\n`);
        setTimeout(late, Number(number), socket);
        return;
      }
      if (action === 'turns') await until(() => lenient.isReady());
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${path.length}\r\n\r\n${path}`);
      if (action !== 'turns') return;
      due++;
      for (let i = 0; i < Number(number); i++) await turn();
      late(socket);
    });
  };
  return Object.assign(lenient, await startSockets(t, kind, serve));
}

const bound = (total: number) => ({ total, perClient: total });

/** Attackers provoke late bytes of all kinds while other clients ask. Each of these must get its own reply. */
async function besiege(t: Test, upstream: Lenient, rounds: number): Promise<void> {
  const { port } = await startBareServer(t, {
    origin: upstream.origin,
    timeoutMs: 600_000,
    bounds: { upstream_connections: bound(8), waiting: bound(200) },
  });
  const attacks = Object.keys(REPLIES).flatMap((kind) => DELAYS_MS.map((ms) => ({ kind, ms })));
  const random = seededRandom(5);
  const wrong: string[] = [];
  let attackers = attacks.length;
  const attack = async ({ kind, ms }: (typeof attacks)[number]): Promise<void> => {
    for (let i = 0; i < rounds; i++) {
      const method = kind.split(' ')[0] ?? '';
      const { status } = await send(port, `/late/${ms}/${encodeURIComponent(kind)}`, { method });
      if (status !== Number(kind.split(' ')[1])) wrong.push(`${kind} after ${ms} ms: ${status}`);
    }
    attackers--;
  };
  let asked = 0;
  const ask = async (client: number): Promise<void> => {
    for (let i = 0; i < 10 || attackers > 0 || upstream.due() > 0; i++) {
      const path = `/own/${client}-${i}`;
      const { status, body } = await send(port, path, { localAddress: `127.0.1.${client}` });
      asked++;
      if (status !== 200 || String(body) !== path) wrong.push(`${path}: ${status} ${body}`);
      // Now and then all connections are idle.
      if (random() < 0.05) await new Promise((resolve) => setTimeout(resolve, 3));
    }
  };
  await Promise.all([...attacks.map(attack), ...Array.from({ length: 12 }, (_, client) => ask(client + 1))]);
  t.comment(`${attacks.length * rounds} late bodies, ${asked} requests of others`);
  t.strictSame(wrong.slice(0, 5), [], `${wrong.length} of ${asked} got another reply`);
}

for (const kind of KINDS) {
  t.test(`${kind}: a body behind a reply that has none reaches nobody`, async (t) => {
    await besiege(t, await startLenient(t, kind), kind === 'http' ? 12 : 3);
  });

  t.test(`${kind}: bytes behind a whole reply, before the event loop has turned, reach nobody`, async (t) => {
    const upstream = await startLenient(t, kind);
    const server = await startBareServer(t, {
      origin: upstream.origin,
      // One connection, so the next request waits for it.
      bounds: { upstream_connections: bound(1), waiting: bound(100) },
    });
    for (const turns of [0, 1])
      for (const method of ['GET', 'POST']) {
        upstream.isReady = () => server.upstream.requests.waiting === 3;
        const first = send(server.port, `/turns/${turns}`);
        await until(() => server.bounds.upstream_connections.held === 1);
        const next = [1, 2, 3].map((id) =>
          send(server.port, `/own/${id}`, { method, localAddress: '127.0.1.9' }),
        );
        t.equal(String((await first).body), `/turns/${turns}`);
        const bodies = (await Promise.all(next)).map(({ body }) => String(body));
        t.strictSame(bodies, ['/own/1', '/own/2', '/own/3'], `${method} after ${turns} turns`);
      }
  });
}

t.test('a connection is reset after HEAD, so that its port is free at once', async (t) => {
  const upstream = await startLenient(t, 'http');
  const { port } = await startBareServer(t, { origin: upstream.origin });
  const lost = (socket: Socket | undefined): Promise<string> =>
    new Promise((resolve) => {
      socket?.on('end', () => resolve('ended')).on('error', ({ message }) => resolve(message));
    });
  t.equal((await send(port, '/own')).status, 200);
  const end = lost(upstream.sockets[0]);
  t.equal((await send(port, '/late/50/HEAD%20200%20silent', { method: 'HEAD' })).status, 200);
  t.match(await end, /ECONNRESET/);
});
