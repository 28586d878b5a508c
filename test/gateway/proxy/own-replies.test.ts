/**
 * Every client gets the whole reply to its own request, however the upstream behaves on its other connections. Replies
 * have all framings and splits, come early, are broken or have more bytes behind them, and clients leave.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import type { Owner } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { dice } from '#test/support/seed.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

const CLIENTS = 24;
const REQUESTS_EACH = 60;
const FEW = { total: 4, perClient: 4 };

const bodyOf = (id: string): string => `${id} `.repeat(1 + (Number(id) % 3) * 4000);

/** The kinds of replies. Those in BROKEN are incomplete. */
const KINDS = [
  'length',
  'chunked',
  'line-feeds',
  'until-close',
  'more-behind',
  'interim',
  'reset',
  'cut',
  'nonsense',
  'coded',
] as const;
type Kind = (typeof KINDS)[number];
const BROKEN: ReadonlySet<Kind> = new Set(['reset', 'cut', 'nonsense', 'coded']);

function replyOf(kind: Kind, id: string, roll: (n: number) => number): string {
  const body = bodyOf(id);
  const length = `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  switch (kind) {
    case 'length':
      return length;
    case 'more-behind':
      return `${length}HTTP/1.1 200 OK\r\nX-Id: nobody\r\nContent-Length: 6\r\n\r\nnobody`;
    case 'line-feeds':
      return length.replaceAll('\r\n', roll(2) === 0 ? '\n' : '\r\n').replace('\r\n', '\n');
    case 'interim':
      return `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${length}`;
    case 'chunked': {
      let chunks = '';
      for (let at = 0; at < body.length; ) {
        const part = body.slice(at, at + 1 + roll(3000));
        chunks += `${part.length.toString(16)}\r\n${part}\r\n`;
        at += part.length;
      }
      return `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
    }
    case 'until-close':
      return `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\n\r\n${body}`;
    case 'reset':
    case 'cut':
      return length.slice(0, roll(length.length));
    case 'coded':
      return `HTTP/1.1 200 OK\r\nX-Id: ${id}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${body}`;
    case 'nonsense':
      return `HTTP/1.1 200 OK\r\nX-Id ${id}\r\n\r\n`;
    default:
      return kind satisfies never;
  }
}

async function startMoody(owner: Owner): Promise<string> {
  const roll = dice(7);
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    let text = '';
    let isBusy = false;
    socket.on('data', async (bytes) => {
      text += bytes.toString('latin1');
      const [, id, length = '0'] =
        /^[A-Z]+ \/(\d+) HTTP[\s\S]*?(?:\r\nContent-Length: (\d+)[\s\S]*?)?\r\n\r\n/.exec(text) ?? [];
      if (id === undefined || isBusy) return;
      const isEarly = roll(10) === 0;
      const bodyAt = text.indexOf('\r\n\r\n') + 4;
      if (!isEarly && text.length - bodyAt < Number(length)) return;
      isBusy = true;
      text = text.slice(bodyAt + Number(length));
      const kind = KINDS[roll(KINDS.length)] ?? 'length';
      const reply = replyOf(kind, id, roll);
      for (let at = 0; at < reply.length; ) {
        const to = roll(4) === 0 ? at + 1 + roll(2000) : reply.length;
        socket.write(reply.slice(at, to));
        at = to;
        if (at < reply.length) await turn();
      }
      isBusy = false;
      if (kind === 'reset') socket.resetAndDestroy();
      else if (kind === 'cut' || kind === 'until-close' || kind === 'nonsense') socket.end();
    });
  });
  return `http://127.0.0.1:${await listen(owner, server)}`;
}

t.test('concurrent requests get their own replies', async (t) => {
  const {
    port,
    upstream: pools,
    bounds,
  } = await startBareServer(t, {
    origin: await startMoody(t),
    timeoutMs: 60_000,
    // The connections are few, so each is reused at once.
    bounds: { upstream_connections: FEW, uploads: FEW, waiting: { total: 100, perClient: 100 } },
  });
  const roll = dice(8);
  const wrong: string[] = [];
  const seen = new Map<number, number>();
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let i = 0; i < REQUESTS_EACH; i++) {
        const id = String(client * REQUESTS_EACH + i);
        const body = roll(3) === 0 ? 'x'.repeat(roll(40_000)) : undefined;
        if (roll(12) === 0) {
          await leaveEarly(port, id, roll(2) === 0);
          continue;
        }
        const reply = await send(port, `/${id}`, { method: body === undefined ? 'GET' : 'POST', body }).catch(
          () => null,
        );
        seen.set(reply?.status ?? 0, (seen.get(reply?.status ?? 0) ?? 0) + 1);
        if (reply?.status !== 200) continue;
        const isOwn = reply.headers['x-id'] === id && reply.body.toString() === bodyOf(id);
        if (!isOwn) wrong.push(`${id}: ${reply.headers['x-id']}, ${reply.body.length} bytes`);
      }
    }),
  );
  t.strictSame(wrong, []);
  t.ok((seen.get(200) ?? 0) > (CLIENTS * REQUESTS_EACH) / 3, `many are whole: ${JSON.stringify([...seen])}`);
  t.ok((seen.get(502) ?? 0) > 0 && BROKEN.size > 0, 'broken replies become 502');
  t.equal(seen.get(504) ?? 0, 0, 'no request times out');
  t.equal(pools.waiting, 0);
  while (bounds.upstream_connections.held + bounds.uploads.held > 0) await turn();
});

/** Sends a request, or half of one, and leaves. */
async function leaveEarly(port: number, id: string, isHalf: boolean): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(
    `POST /${id} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n${isHalf ? '1234' : '123456789'}`,
  );
  await turn();
  socket.destroy();
}
