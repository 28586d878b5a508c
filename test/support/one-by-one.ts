/**
 * Clients that open a connection for each request. What the kernel has queued for a gateway that closes its port is reset
 * unless net.ipv4.tcp_migrate_req is set (Linux 5.14), which a test must not do to its machine. Such a connection is
 * tried again here, as HTTP clients do.
 */
import { Agent, get } from 'node:http';

/** Starts clients that open a connection for each request, until stopped. @param tries of each request */
export function connectOneByOne(port: number, clients: number, tries = 3) {
  const failures: string[] = [];
  let answered = 0;
  let stopped = false;
  const ask = (left = tries): Promise<void> =>
    new Promise((resolve) => {
      const agent = new Agent({ keepAlive: false });
      get({ port, host: '127.0.0.1', path: '/x', agent }, (res) => {
        res.resume().on('end', () => {
          if (res.statusCode === 200 && res.complete) answered++;
          else failures.push(String(res.statusCode));
          resolve();
        });
        res.on('error', (error) => resolve(void failures.push(error.message)));
      }).on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET' && left > 1) {
          resolve(ask(left - 1));
          return;
        }
        failures.push(error.code ?? error.message);
        resolve();
      });
    });
  const loops = Array.from({ length: clients }, async () => {
    while (!stopped) await ask();
  });
  return {
    failures,
    answered: () => answered,
    async stop() {
      stopped = true;
      await Promise.all(loops);
    },
  };
}
