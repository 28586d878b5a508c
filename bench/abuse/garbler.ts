/** A TCP proxy before Redis that can garble replies: one decision in fifty becomes nonsense of the same length. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { freePort } from '#test/support/ports.ts';

const GARBLED_EVERY = 50;

export interface Garbler {
  readonly port: number;
  garble(isOn: boolean): void;
  close(): void;
}

export async function startGarbler(redisPort: number): Promise<Garbler> {
  const port = await freePort();
  const open = new Set<Socket>();
  let decisions = 0;
  let isGarbling = false;
  const server = createServer((client) => {
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        redis.destroy();
      });
    }
    client.pipe(redis);
    redis.on('data', (chunk: Buffer) => {
      // The text of a decision begins with a bracket, after its length.
      const at = chunk.indexOf('\r\n[');
      if (isGarbling && at > 0 && ++decisions % GARBLED_EVERY === 0) chunk.fill('{', at + 2, at + 3);
      client.write(chunk);
    });
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    port,
    garble(isOn) {
      isGarbling = isOn;
    },
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
