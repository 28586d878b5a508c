/**
 * The upstream of the abuse bench and of the soak: `node upstream.ts PORT`. Each reply describes its request, so a
 * client can check that the reply belongs to its request. The upstream counts the requests that it receives.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { freePort } from '#test/support/ports.ts';
import type { Processes } from './processes.ts';
import { BENCH } from './programs.ts';

/** Only the visitor of the abuse bench sends this header. All other requests come from the attacker. */
export const VISITOR_HEADER = 'x-bench-visitor';
/** Header with names, separated by commas. The upstream counts the request under each name. */
export const COUNT_HEADER = 'x-bench-count';

const COUNTS_PATH = '/bench/counts';
const DOWNLOAD_BYTES = 50_000_000;
const PIECE = Buffer.alloc(65_536, 'd');
const SLOW_MS_MAX = 30_000;
const EVENT_MS = 500;
const EARLY = '{"message":"before the body was read"}';
const METHOD_OR_URL = ['x-http-method-override', 'x-original-url', 'x-rewrite-url'];
const SMUGGLED = ['x_api_key', 'x_forwarded_for', ...METHOD_OR_URL, 'proxy'];

/** @returns its port */
export async function startUpstream(processes: Processes): Promise<number> {
  const port = await freePort();
  await processes.node([join(BENCH, 'run', 'upstream.ts'), String(port)], port);
  return port;
}

/**
 * Returns the number of requests for each name in `COUNT_HEADER`, since the previous call. Requests of the attacker are
 * also counted as `admitted`. Those with a header that no gateway should forward are counted as `smuggled`.
 */
export async function countsOf(port: number): Promise<Readonly<Record<string, number>>> {
  return (await (await fetch(`http://127.0.0.1:${port}${COUNTS_PATH}`)).json()) as Record<string, number>;
}

/** Returns the reply to a request that was received completely. */
export function replyTo(method: string, path: string, bytes: number): string {
  return JSON.stringify({ method, path, bytes });
}

const counts = new Map<string, number>();

function json(res: ServerResponse, status: number, text: string): void {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  res.writeHead(status, headers).end(text);
}

/** Returns the status of the reply. A valid session is enough, even if the API key is invalid. */
function statusOf({ headers, url = '' }: IncomingMessage): number {
  if (/%ff/i.test(url)) return 400;
  const key = headers['x-api-key'];
  const hasSession = headers.cookie === 'session=real' || headers.authorization === 'Bearer session-real';
  return hasSession || key === undefined || String(key).startsWith('fbk_valid_') ? 200 : 401;
}

function reply(req: IncomingMessage, res: ServerResponse): void {
  const { method = '', url = '' } = req;
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
  });
  req.on('end', () => json(res, statusOf(req), replyTo(method, url, bytes)));
}

function download(req: IncomingMessage, res: ServerResponse, bytes: number): void {
  res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
  if (req.method === 'HEAD') {
    res.end();
    return;
  }
  let left = bytes;
  // Send one piece in each event-loop tick. Otherwise one download would delay all other replies of this upstream.
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
  const send = (): void => void res.write(`id: ${id}\ndata: event ${id++}\n\n`);
  send();
  const timer = setInterval(send, EVENT_MS);
  res.once('close', () => clearInterval(timer));
}

function count({ headers }: IncomingMessage): void {
  const names = String(headers[COUNT_HEADER] ?? '').split(',');
  if (headers[VISITOR_HEADER] === undefined) {
    names.push('admitted');
    if (SMUGGLED.some((name) => headers[name] !== undefined)) names.push('smuggled');
  }
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
}

function slow(res: ServerResponse, ms: number): void {
  const timer = setTimeout(() => json(res, 200, '{}'), ms);
  res.once('close', () => clearTimeout(timer));
}

function serve(req: IncomingMessage, res: ServerResponse): void {
  const [path = '', query = ''] = (req.url ?? '').split('?');
  const parameter = (name: string, initial: number, max: number): number =>
    Math.min(max, Number(new URLSearchParams(query).get(name) ?? initial));
  if (path === COUNTS_PATH) {
    json(res, 200, JSON.stringify(Object.fromEntries(counts)));
    counts.clear();
  } else {
    count(req);
    if (path === '/bench/events') events(res);
    else if (path === '/bench/download')
      download(req, res, parameter('bytes', DOWNLOAD_BYTES, DOWNLOAD_BYTES));
    else if (path === '/bench/slow') slow(res, parameter('ms', 1000, SLOW_MS_MAX));
    else if (path === '/bench/early-401') json(res, 401, EARLY);
    else if (path === '/bench/early-413') json(res, 413, EARLY);
    else reply(req, res);
  }
}

if (import.meta.main) {
  const server = createServer(serve);
  // A tunnel echoes what it receives.
  server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
    count(req);
    socket.on('error', () => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.pipe(socket);
  });
  server.keepAliveTimeout = 120_000;
  server.maxHeadersCount = 0;
  server.listen({ port: Number(process.argv[2]), host: '127.0.0.1', backlog: 1024 });
}
