import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Owner } from './gateway.ts';

/**
 * Lets a server of a test listen on loopback. With the test it is closed, and so are its connections.
 *
 * @param port 0 for any free port
 * @returns the port
 */
export async function listen(owner: Owner, server: Server, port = 0): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  owner.teardown(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}
