import { connect, createServer, type Socket } from 'node:net';
import type { Owner } from './gateway.ts';
import { listen } from './listen.ts';

/**
 * Starts a TCP proxy in front of a store. When one side of a connection ends, so does the other.
 *
 * @param join passes bytes on between a client and the store, or does something else with them
 * @returns the port
 */
export function startRelay(
  owner: Owner,
  port: number,
  join: (client: Socket, store: Socket) => void,
): Promise<number> {
  const server = createServer((client) => {
    const store = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [client, store],
      [store, client],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    join(client, store);
  });
  return listen(owner, server);
}

interface DistantRelay {
  readonly port: number;
  /** Number of connections whose far side has ended. */
  readonly ended: number;
}

/** Starts a TCP proxy that delivers all bytes, and the end of each side, later: as a network between two machines does. */
export async function startDistantRelay(owner: Owner, to: number, delayMs: number): Promise<DistantRelay> {
  let ended = 0;
  const later = (then: () => void): void => void setTimeout(then, delayMs);
  const pass = (from: Socket, into: Socket): void => {
    from
      .on('data', (bytes) => later(() => into.write(bytes)))
      .on('end', () => later(() => into.end()))
      .on('error', () => later(() => into.destroy()))
      .on('close', () => later(() => into.destroy()));
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true });
    far.on('end', () => void ended++);
    pass(near, far);
    pass(far, near);
  });
  const port = await listen(owner, server);
  return {
    port,
    get ended() {
      return ended;
    },
  };
}
