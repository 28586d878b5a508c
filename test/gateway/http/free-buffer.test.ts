/** Bodies release their memory as soon as they are written. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import t from 'tap';
import { ownMemory, writeLast } from '#gateway/http/free-buffer.ts';
import type { Owner } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';

const LARGE = 65_536;
const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const garbage = { freed: () => undefined };

/** Allocates memory of its own, like a read of a socket. */
function own(bytes: number): Buffer {
  return Buffer.from(new ArrayBuffer(bytes)).fill('x');
}

/** Resolves with everything that arrives at the other end, once `socket` has ended. */
async function opposite<S extends Socket>(
  owner: Owner,
  socket: S,
): Promise<{ readonly socket: S; arrived(): Promise<Buffer> }> {
  const server = createServer();
  const port = await listen(owner, server);
  const accepted = once(server, 'connection');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const [peer] = (await accepted) as [Socket];
  return {
    socket,
    async arrived() {
      socket.end();
      const chunks: Buffer[] = [];
      for await (const chunk of peer) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    },
  };
}

t.test('a buffer that the socket has written is emptied, and its bytes have arrived', async (t) => {
  const { socket, arrived } = await opposite(t, new Socket());
  const chunks = Array.from({ length: 64 }, () => own(LARGE));
  let freed = 0;
  for (const chunk of chunks) writeLast(socket, chunk, { freed: (count) => (freed += count) });
  t.equal(chunks.at(-1)?.length, LARGE, 'a buffer that is not written yet is kept');
  const bytes = await arrived();
  t.equal(digest(bytes), digest(Buffer.alloc(64 * LARGE, 'x')));
  t.ok(chunks.every(({ length, buffer }) => length === 0 && buffer.byteLength === 0));
  t.equal(freed, 64 * LARGE);
});

t.test('a buffer that cannot be written is left to the garbage collector', async (t) => {
  const { socket } = await opposite(t, new Socket());
  socket.on('error', () => undefined).destroy();
  const chunk = own(LARGE);
  writeLast(socket, chunk, garbage);
  await once(socket, 'close');
  t.equal(chunk.length, LARGE);
});

t.test('small and shared buffers are not freed', async (t) => {
  const { socket, arrived } = await opposite(t, new Socket());
  const small = own(16_384);
  const shared = own(LARGE).subarray(1);
  for (const chunk of [small, shared]) {
    writeLast(socket, chunk, garbage);
    t.equal(ownMemory(chunk), null);
  }
  t.equal(ownMemory('text'), null);
  t.equal((await arrived()).length, 16_384 + LARGE - 1);
  t.equal(small.length, 16_384);
  t.equal(shared.length, LARGE - 1);
});
