import { createServer } from 'node:net';

/**
 * Checks that no other program has the port, which sockets that share a port would not notice. @throws if it is taken
 */
export function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
