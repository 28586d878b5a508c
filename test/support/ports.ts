import { createServer } from 'node:net';

const given = new Set<number>();

/** A TCP port on loopback that was free a moment ago, and a new one each time: the kernel may well offer one twice. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => {
        if (given.has(port)) resolve(freePort());
        else {
          given.add(port);
          resolve(port);
        }
      });
    });
  });
}
