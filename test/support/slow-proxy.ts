/** A TCP proxy in front of a store that delays some of its answers. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Owner } from './gateway.ts';

export interface SlowProxy {
  readonly port: number;
  /** Number of pieces of the store's answers that were delayed. */
  readonly delayed: number;
}

/**
 * Each connection keeps its order: whatever follows a delayed answer waits for it.
 *
 * @param delayMs for how long a piece of an answer is held back; asked for each, 0: not at all
 */
export async function startSlowProxy(
  owner: Owner,
  port: number,
  delayMs: (piece: Buffer) => number,
): Promise<SlowProxy> {
  const sockets = new Set<Socket>();
  let delayed = 0;
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    near.on('data', (piece) => far.write(piece));
    const waiting: Buffer[] = [];
    let isHeld = false;
    const passOn = (): void => {
      for (let piece = waiting.shift(); piece !== undefined; piece = waiting.shift()) near.write(piece);
    };
    far.on('data', (piece: Buffer) => {
      const ms = delayMs(piece);
      waiting.push(piece);
      if (isHeld) return;
      if (ms === 0) return passOn();
      delayed++;
      isHeld = true;
      setTimeout(() => {
        isHeld = false;
        passOn();
      }, ms);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get delayed() {
      return delayed;
    },
  };
}

/** Delays every hundredth answer by 30 to 300 ms. */
export function everyHundredth(random: () => number): () => number {
  let answers = 0;
  return () => (++answers % 100 === 0 ? 30 + Math.floor(random() * 271) : 0);
}
