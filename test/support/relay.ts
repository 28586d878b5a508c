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
