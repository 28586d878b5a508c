/** Replies in one write, past node:http's own way of writing: nobody must be able to tell the two ways apart. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { canWriteWhole, headText, KEEP_ALIVE_MS, writeWhole } from '#gateway/proxy/whole-reply.ts';
import { sendRaw } from '#test/support/raw.ts';

const BODY = 'caf\xe9';
const FIELDS = ['Content-Type', 'text/plain', 'Content-Length', '4', 'Date', 'Sat, 21 Nov 2026 12:00:00 GMT'];

async function serve(t: Test, reply: (req: IncomingMessage, res: ServerResponse) => void): Promise<number> {
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
    // As the gateway does: never in the turn in which the request came.
    setImmediate(reply, req, res);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  t.teardown(() => server.closeAllConnections());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const whole = (_req: IncomingMessage, res: ServerResponse): void =>
  writeWhole(res, headText(200, 'OK', FIELDS), BODY);
const usual = (_req: IncomingMessage, res: ServerResponse): void => {
  res.writeHead(200, 'OK', FIELDS);
  res.end(BODY, 'latin1');
};

t.test('byte for byte what node:http writes, one reply after the other', async (t) => {
  const replies: string[] = [];
  for (const way of [whole, usual]) {
    const { socket, until } = sendRaw(await serve(t, way), 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(/caf\xe9$/);
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc');
    await until(/caf\xe9[\s\S]+caf\xe9$/);
    // Two in one packet: the second waits for its turn.
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n');
    replies.push(await until(/(?:caf\xe9[\s\S]*){4}$/));
    socket.destroy();
  }
  t.equal(replies[0], replies[1]);
  t.match(replies[0], /Keep-Alive: timeout=65\r\n\r\ncaf\xe9$/);
});

t.test('a client that does not read holds up its own replies, and gets them all in the end', async (t) => {
  const body = 'x'.repeat(16_000);
  const requests = 2000;
  let replied = 0;
  let backlog = 0;
  const port = await serve(t, (req, res) => {
    const reply = (): void => {
      replied++;
      backlog = Math.max(backlog, res.socket?.writableLength ?? 0);
      writeWhole(res, headText(200, 'OK', ['Content-Length', String(body.length)]), body);
    };
    // As the gateway does: not before its turn.
    if (canWriteWhole(req, res)) reply();
    else res.once('socket', reply);
  });
  const client = connect(port, '127.0.0.1').pause();
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(requests));
  let before = -1;
  while (replied > before) {
    before = replied;
    await sleep(200);
  }
  t.ok(replied < requests, `the rest waits (${replied} of ${requests} replied)`);
  t.equal(backlog, 0, 'nothing piles up before a reply');
  let received = 0;
  client.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  client.resume();
  while (replied < requests) await once(client, 'data');
  client.end();
  await once(client, 'end');
  t.ok(received > requests * body.length, 'every one arrives');
});

t.test('a reply that ends its connection, and one without a body, is left to node:http', async (t) => {
  const answers: boolean[] = [];
  const port = await serve(t, (req, res) => {
    answers.push(canWriteWhole(req, res));
    res.end('x');
  });
  const ask = async (head: string): Promise<boolean | undefined> => {
    const { socket, until } = sendRaw(port, `${head}\r\n\r\n`);
    await until(/\r\n\r\n/);
    socket.destroy();
    return answers.pop();
  };
  t.equal(await ask('GET / HTTP/1.1\r\nHost: a'), true);
  t.equal(await ask('GET / HTTP/1.1\r\nHost: a\r\nConnection: close'), false);
  t.equal(await ask('GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive'), false);
  t.equal(await ask('HEAD / HTTP/1.1\r\nHost: a'), false);
});

t.test('nor a reply that has begun, or that nobody is there for any more', async (t) => {
  const seen: boolean[] = [];
  const port = await serve(t, (req, res) => {
    res.flushHeaders();
    seen.push(canWriteWhole(req, res));
    res.destroy();
    seen.push(canWriteWhole(req, res));
  });
  await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n').ended();
  t.strictSame(seen, [false, false]);
});
