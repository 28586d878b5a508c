/** A shared reply is checked once, and no socket sends an id that was meant for another one. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { SharedReply } from '#gateway/http/shared-reply.ts';

const GAP = '~~~~';
const BODY = `{"id":"${GAP}"}`;
const LENGTH = ['Content-Length', String(BODY.length)];

const shared = (): SharedReply => new SharedReply(429, ['Id', GAP, ...LENGTH], BODY, GAP);

t.test('fields are shared only if each can be written, and one is the length of the body', async (t) => {
  for (const headers of [
    ['A', 'b\r\nC: d'],
    ['A b', 'c'],
    ['', 'c'],
    ['A', '\0'],
    ['A', '\u{1f642}'],
  ])
    t.throws(() => new SharedReply(429, [...LENGTH, ...headers], BODY, GAP), /cannot be written/);
  t.throws(() => new SharedReply(429, ['A', 'b'], BODY, GAP), /Content-Length/);
  t.throws(() => new SharedReply(429, LENGTH, `${BODY} `, GAP), /Content-Length/);
});

/** Two ends of a TCP connection. */
async function connected(t: Test): Promise<{ readonly near: Socket; readonly far: Socket }> {
  const server = createServer({ noDelay: true });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const accepted = once(server, 'connection');
  const far = connect(address.port, '127.0.0.1');
  const [near] = (await accepted) as [Socket];
  t.teardown(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far };
}

/** Resolves to all that arrives, when it ends with the text. */
async function received(far: Socket, ending: RegExp): Promise<string> {
  let text = '';
  for await (const chunk of far) {
    text += chunk.toString('latin1');
    if (ending.test(text)) break;
  }
  return text;
}

t.test('a reply that the system has not taken keeps its id', async (t) => {
  const reply = shared();
  const slow = await connected(t);
  const quick = await connected(t);
  t.equal(reply.writeTo(quick.near, 'id-1', 'timeout=5', 'today'), true);
  while (slow.near.write(Buffer.alloc(65_536, '.')));
  t.equal(reply.writeTo(slow.near, 'id-2', 'timeout=5', 'today'), false, 'the client does not read');
  t.equal(reply.writeTo(quick.near, 'id-3', 'timeout=5', 'today'), true);
  t.equal(reply.writeTo(quick.near, 'id-4', 'timeout=5', 'today'), true);
  const texts = await Promise.all([received(slow.far, /"}$/), received(quick.far, /(?:HTTP[^}]*}){3}$/)]);
  const ids = texts.map((text) => [...text.matchAll(/Id: (\S+)|"id":"(.*?)"/g)].map(([, a, b]) => a ?? b));
  t.strictSame(ids, [
    ['id-2', 'id-2'],
    ['id-1', 'id-1', 'id-3', 'id-3', 'id-4', 'id-4'],
  ]);
});

t.test('an id that does not fit its gap is a fault', async (t) => {
  const { near } = await connected(t);
  t.throws(() => shared().writeTo(near, 'id', 'timeout=5', 'today'), /as long as its gap/);
});
