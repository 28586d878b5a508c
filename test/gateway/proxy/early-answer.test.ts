/** Upstreams may reply before they have read the request, and close. The reply reaches the client. */
import type { Socket } from 'node:net';
import t from 'tap';
import { type Owner, startTestGateway } from '#test/support/gateway.ts';
import { breakOff, KINDS, type Kind, startSockets } from '#test/support/kinds.ts';
import { send } from './exchange.ts';

const BODY_20MB = Buffer.alloc(20 * 1024 * 1024, 'x');
const ANSWER =
  'HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n\r\ntoo large for me';

/** Reads the head, and only the part of the body that came with it. */
async function startUpstream(owner: Owner, kind: Kind, answer: (socket: Socket) => void): Promise<string> {
  const { origin } = await startSockets(owner, kind, (socket) => {
    socket.once('data', () => {
      socket.pause();
      answer(socket);
    });
  });
  return origin;
}

const ways: Record<string, (socket: Socket) => void> = {
  'closes at once': (socket) => void socket.end(ANSWER, () => socket.destroy()),
  'resets the connection': (socket) => void socket.write(ANSWER, () => breakOff(socket)),
  'closes a little later': (socket) =>
    void socket.write(ANSWER, () => setTimeout(() => socket.destroy(), 20)),
};

for (const [way, answer, kind] of Object.entries(ways).flatMap(([way, answer]) =>
  KINDS.map((kind) => [way, answer, kind] as const),
)) {
  t.test(`${kind}: 413 to 20 MB from an upstream that ${way}`, async (t) => {
    const origin = await startUpstream(t, kind, answer);
    const { port } = await startTestGateway(t, { upstream: origin });
    const statuses: number[] = [];
    for (let round = 0; round < (kind === 'http' ? 30 : 5); round++) {
      const reply = await send(port, '/up', { method: 'POST', body: BODY_20MB, pieces: 1024 * 1024 });
      statuses.push(reply.status);
      if (reply.status === 413) t.equal(reply.body.toString(), 'too large for me');
    }
    t.same(
      statuses.filter((status) => status !== 413),
      [],
    );
  });
}

t.test('an upstream that closes without a reply counts as unavailable', async (t) => {
  const origin = await startUpstream(t, 'http', breakOff);
  const { port } = await startTestGateway(t, { upstream: origin });
  const { status } = await send(port, '/up', { method: 'POST', body: BODY_20MB.subarray(0, 1024 * 1024) });
  t.equal(status, 502);
});
