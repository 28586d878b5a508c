/**
 * What stands behind every target: `node upstream.ts PORT`. It tells in each answer what it was asked, so a client can
 * see that the answer is its own; and it counts what of the attack came through.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  COUNT_HEADER,
  COUNTS_PATH,
  STATS_PATH,
  type UpstreamStats,
  VICTIM_HEADER,
} from './upstream-paths.ts';

const DOWNLOAD_BYTES = 50_000_000;
const PIECE = Buffer.alloc(65_536, 'd');
const SLOW_MS_MAX = 30_000;
const EVENT_MS = 500;

const SMUGGLED = [
  'x_api_key',
  'x_forwarded_for',
  'x-http-method-override',
  'x-original-url',
  'x-rewrite-url',
  'proxy',
];

const counts = new Map<string, number>();
const stats: UpstreamStats = { admitted: 0, smuggled: 0 };

function json(res: ServerResponse, status: number, value: object): void {
  const text = JSON.stringify(value);
  res
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}

/** A session counts for more than a key, as in applications where an administrator is logged in. */
function statusOf({ headers, url = '' }: IncomingMessage): number {
  if (/%ff/i.test(url)) return 400;
  const key = headers['x-api-key'];
  const hasSession = headers.cookie === 'session=real' || headers.authorization === 'Bearer session-real';
  return hasSession || key === undefined || String(key).startsWith('fbk_valid_') ? 200 : 401;
}

function answer(req: IncomingMessage, res: ServerResponse): void {
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  req.on('end', () => json(res, statusOf(req), { method: req.method, path: req.url, bytes }));
}

function download(req: IncomingMessage, res: ServerResponse): void {
  const bytes = Math.min(
    DOWNLOAD_BYTES,
    Number(new URLSearchParams(req.url?.split('?')[1]).get('bytes') ?? DOWNLOAD_BYTES),
  );
  res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  let left = bytes;
  // One piece a turn of the loop: otherwise one download holds up all others here, and a target would get the blame.
  const more = (): void => {
    if (res.destroyed) return;
    const piece = PIECE.subarray(0, left);
    left -= piece.length;
    if (left === 0) res.end(piece);
    else if (res.write(piece)) setImmediate(more);
    else res.once('drain', more);
  };
  more();
}

function events(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  let id = 0;
  const tell = (): void => void res.write(`id: ${id}\ndata: event ${id++}\n\n`);
  tell();
  const timer = setInterval(tell, EVENT_MS);
  res.once('close', () => clearInterval(timer));
}

function slow(req: IncomingMessage, res: ServerResponse): void {
  const ms = Math.min(SLOW_MS_MAX, Number(new URLSearchParams(req.url?.split('?')[1]).get('ms') ?? 1000));
  const timer = setTimeout(() => json(res, 200, { path: req.url }), ms);
  res.once('close', () => clearTimeout(timer));
}

const server = createServer((req, res) => {
  const path = req.url?.split('?')[0] ?? '';
  if (path === STATS_PATH) {
    json(res, 200, stats);
    return;
  }
  if (path === COUNTS_PATH) {
    json(res, 200, Object.fromEntries(counts));
    counts.clear();
    return;
  }
  count(req);
  switch (path) {
    case '/bench/events':
      events(res);
      return;
    case '/bench/download':
      download(req, res);
      return;
    case '/bench/slow':
      slow(req, res);
      return;
    case '/bench/early-401':
      json(res, 401, { message: 'before the body was read' });
      return;
    case '/bench/early-413':
      json(res, 413, { message: 'before the body was read' });
      return;
    default:
      answer(req, res);
  }
});

function count({ headers }: IncomingMessage): void {
  const names = headers[COUNT_HEADER];
  if (typeof names === 'string') {
    for (const name of names.split(',')) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (headers[VICTIM_HEADER] !== undefined) return;
  stats.admitted++;
  if (SMUGGLED.some((name) => headers[name] !== undefined)) stats.smuggled++;
}

// Sends back the bytes of a tunnel as they come: what it carries is no matter here.
server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
  count(req);
  socket.on('error', () => socket.destroy());
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.pipe(socket);
});
server.keepAliveTimeout = 120_000;
server.maxHeadersCount = 0;
server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 1024 });
