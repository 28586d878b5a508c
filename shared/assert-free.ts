import { createServer } from 'node:net';

/**
 * Checks that no other program uses the port. Workers share their port, and the kernel would also let another program's
 * workers share it, so the supervisor checks it once before they start.
 *
 * @throws the error of `listen` if the port is in use
 */
export function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()));
  });
}
