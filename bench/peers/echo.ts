/**
 * A plain `node:http` server without limits and without an upstream. It shows the lowest possible cost of a reply on
 * Node. `node echo.ts PORT WORKERS BODY` reads each request and replies with these bytes.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Processes, Started } from '#bench/run/processes.ts';
import { serveWith } from '#bench/run/workers.ts';
import type { Peer } from './peer.ts';

export function startEcho(
  processes: Processes,
  { port, workers, body }: { readonly port: number; readonly workers: number; readonly body: string },
): Promise<Started> {
  const args = [import.meta.filename, String(port), String(workers), body];
  return processes.node('the echo', args, { readyText: 'ready' });
}

export const ECHO: Peer = {
  name: 'echo',
  label: 'node:http alone',
  needs: [],
  start: ({ processes, port }) => startEcho(processes, { port, workers: 1, body: '{}' }),
};

if (import.meta.main) {
  const [port, workers, body = ''] = process.argv.slice(2);
  const bytes = Buffer.from(body);
  const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
  await serveWith(Number(workers), async () => {
    const server = createServer((req, res) => {
      req.resume().on('end', () => res.writeHead(200, headers).end(bytes));
    });
    await once(server.listen(Number(port), '127.0.0.1'), 'listening');
  });
}
