/** The cheapest server on Node: `node echo.ts PORT WORKERS BODY` reads each request and replies with these bytes. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { serveWith } from './workers.ts';

const [port, workers, body = ''] = process.argv.slice(2);
const bytes = Buffer.from(body);
const headers = { 'content-type': 'application/json', 'content-length': bytes.length };

await serveWith(Number(workers), async () => {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.writeHead(200, headers).end(bytes));
  });
  await once(server.listen(Number(port), '127.0.0.1'), 'listening');
});
