/**
 * A plain `node:http` server without limits and without an upstream: `node echo.ts PORT`. It shows the lowest possible
 * cost of a reply on Node.
 */
import { createServer } from 'node:http';
import type { Peer } from './peer.ts';

const BODY = '{}';

export const ECHO: Peer = {
  name: 'echo',
  label: 'node:http alone',
  needs: [],
  isBare: true,
  start: ({ processes, port }) => processes.node('the echo', [import.meta.filename, String(port)], { port }),
};

if (import.meta.main) {
  const headers = { 'content-type': 'application/json', 'content-length': BODY.length };
  createServer((req, res) => {
    req.resume().on('end', () => res.writeHead(200, headers).end(BODY));
  }).listen(Number(process.argv[2]), '127.0.0.1');
}
