/** Bodies release their memory as soon as they are written, and arrive whole on every path. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, Socket } from 'node:net';
import t from 'tap';
import { free, ownMemory, writeLast } from '#gateway/http/free-buffer.ts';
import { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import { readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, startUpstream } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { sendTls } from '#test/support/tls-client.ts';

const LARGE = 65_536;
const BODY = Buffer.alloc(3 * 1024 * 1024 + 7, Buffer.from(Array.from({ length: 251 }, (_, i) => i)));
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

t.test('a buffer that was freed is not freed again', async (t) => {
  const memory = ownMemory(own(LARGE));
  if (memory === null) return t.fail('the buffer is large');
  t.equal(free(memory), LARGE);
  t.equal(free(memory), 0);
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

t.test('bodies with a length and in chunks arrive whole over TCP and TLS', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    const hash = createHash('sha256');
    req.on('data', (chunk: Buffer) => hash.update(chunk));
    req.on('end', () => {
      if (req.method === 'POST') res.end(hash.digest('hex'));
      else if (req.url === '/length') res.end(BODY);
      else {
        // The pieces do not align with reads of a socket.
        for (let at = 0; at < BODY.length; at += 70_001) res.write(BODY.subarray(at, at + 70_001));
        res.end();
      }
    });
  });
  const authority = createAuthority(t);
  const handshakes = new Handshakes(readKeyPair(authority.issue('server', 'IP:127.0.0.1')));
  const plain = await startBareServer(t, { origin: upstream.origin });
  const secured = await startBareServer(t, { origin: upstream.origin, handshakes });
  const downloads = async (path: string): Promise<void> => {
    t.equal(digest((await send(plain.port, path)).body), digest(BODY), `TCP ${path}`);
    const tls = await sendTls(secured.port, path, authority.ca);
    t.equal(digest(tls.body), digest(BODY), `TLS ${path}`);
  };
  const uploads = async (pieces?: number): Promise<void> => {
    const options = { method: 'POST', body: BODY };
    const piecewise = pieces === undefined ? {} : { pieces };
    t.equal((await send(plain.port, '/', { ...options, ...piecewise })).body.toString(), digest(BODY), 'TCP');
    t.equal((await sendTls(secured.port, '/', authority.ca, options)).body.toString(), digest(BODY), 'TLS');
  };
  await Promise.all([
    ...['/length', '/chunks', '/length', '/chunks'].map(downloads),
    ...[uploads(), uploads(50_001)],
  ]);
});
