import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Owner } from './gateway.ts';

/**
 * Lets a server of a test listen on a free port of loopback. With the test it is closed, and so are its connections.
 *
 * @returns the port
 */
export async function listen(owner: Owner, server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}
