/** Buffers for the upstream are freed as soon as they are written, and not earlier. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import t, { type Test } from 'tap';
import { keepReading } from '#gateway/proxy/upstream-socket.ts';
import { listen } from '#test/support/listen.ts';
import { seededBytes } from '#test/support/seed.ts';

async function connected(t: Test): Promise<{ socket: Socket; peer: Socket; freed: () => number }> {
  const server = createServer({ pauseOnConnect: true });
  const port = await listen(t, server);
  let freed = 0;
  const socket = new Socket();
  keepReading(socket, {
    freed(bytes) {
      freed += bytes;
    },
  });
  t.teardown(() => socket.destroy());
  socket.connect({ host: '127.0.0.1', port });
  const [[peer]] = (await Promise.all([once(server, 'connection'), once(socket, 'connect')])) as [
    [Socket],
    unknown,
  ];
  t.teardown(() => peer.destroy());
  return { socket, peer, freed: () => freed };
}

const digest = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const written = (socket: Socket, chunk: Buffer | string): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.write(chunk, (error) => (error == null ? resolve() : reject(error)));
  });

t.test('a buffer that is written together with an earlier one is freed too', async (t) => {
  const { socket, freed } = await connected(t);
  const chunk = Buffer.from(new ArrayBuffer(65_536));
  socket.cork();
  socket.write('10000\r\n', 'latin1');
  const isWritten = written(socket, chunk);
  socket.uncork();
  await isWritten;
  t.equal(chunk.length, 0);
  t.equal(freed(), 65_536);
});

t.test('a buffer is kept while the peer does not read, and arrives whole', async (t) => {
  const { socket, peer, freed } = await connected(t);
  // This is larger than any socket buffer.
  const chunk = Buffer.from(new ArrayBuffer(64 * 1024 * 1024));
  for (let at = 0; at < chunk.length; at += 1024 * 1024) chunk.set(seededBytes(at, 1024), at);
  const { length } = chunk;
  const sent = digest(chunk);
  const isWritten = written(socket, chunk);
  socket.end();
  t.equal(chunk.length, length, 'a part is not written yet');
  t.equal(freed(), 0);
  const hash = createHash('sha256');
  peer.on('data', (piece: Buffer) => hash.update(piece)).resume();
  await Promise.all([isWritten, once(peer, 'end')]);
  t.equal(hash.digest('hex'), sent);
  t.equal(chunk.length, 0);
  t.equal(freed(), length);
});

t.test('a buffer is not freed after an error', async (t) => {
  const { socket, peer, freed } = await connected(t);
  const chunk = Buffer.from(new ArrayBuffer(64 * 1024 * 1024));
  const isClosed = new Promise<void>((resolve) => {
    socket.on('error', () => undefined).once('close', () => resolve());
  });
  const outcome = written(socket, chunk).then(
    () => null,
    (error: Error) => error,
  );
  peer.resetAndDestroy();
  await outcome;
  await isClosed;
  t.equal(chunk.length, 64 * 1024 * 1024);
  t.equal(freed(), 0);
});
