import { createServer } from 'node:net';

/** Sockets that share a port do not see that another program has it, if that shares too. @throws when it is taken */
export function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
