/**
 * A small application with what clients of HTTP depend on: redirects, cookies, ranges, uploads and downloads of both
 * framings, conditional requests, refusals, event streams, WebSocket. Run with the port as argument.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz';
const LARGE = Buffer.alloc(300_000, ALPHABET);
const ETAG = '"version-1"';
const MODIFIED = 'Wed, 01 Jan 2025 00:00:00 GMT';

type Handler = (req: IncomingMessage, res: ServerResponse, url: URL) => void;

const handlers: Readonly<Record<string, Handler>> = {
  /** Redirects to the query's target with the query's status. */
  '/redirect': (_req, res, { searchParams }) => {
    res.writeHead(Number(searchParams.get('status')), { location: searchParams.get('to') ?? '/' });
    res.end('elsewhere');
  },
  '/cookies/set': (_req, res) => {
    res.writeHead(302, {
      location: '/cookies/show',
      'set-cookie': ['a=1; Path=/', 'b=2; Path=/cookies; HttpOnly'],
    });
    res.end();
  },
  '/cookies/show': (req, res) => {
    const cookies = (req.headers.cookie ?? '').split('; ').sort();
    res.end(cookies.join('; '));
  },
  /** Says what arrived, and in which framing. */
  '/upload': (req, res) => {
    const hash = createHash('sha256');
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      hash.update(chunk);
    });
    req.on('end', () => {
      const framing = req.headers['transfer-encoding'] ?? 'length';
      res.end(`${req.method} ${framing} ${bytes} ${hash.digest('hex').slice(0, 8)}`);
    });
  },
  '/download/length': (_req, res) => {
    res.writeHead(200, { 'content-length': LARGE.length, 'content-type': 'application/octet-stream' });
    res.end(LARGE);
  },
  '/download/chunked': (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/octet-stream' });
    for (let at = 0; at < LARGE.length; at += 50_000) res.write(LARGE.subarray(at, at + 50_000));
    res.end();
  },
  '/none': (_req, res) => res.writeHead(204).end(),
  '/tagged': (req, res) => {
    const { 'if-none-match': tag, 'if-modified-since': since } = req.headers;
    const isKnown = tag === ETAG || since === MODIFIED;
    res.writeHead(isKnown ? 304 : 200, { etag: ETAG, 'last-modified': MODIFIED });
    res.end(isKnown ? undefined : 'tagged');
  },
  '/range': (req, res) => {
    const [, from = '', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '') ?? [];
    if (from === '') {
      res.writeHead(200, { 'accept-ranges': 'bytes', 'content-length': ALPHABET.length });
      res.end(ALPHABET);
      return;
    }
    const last = to === '' ? ALPHABET.length - 1 : Number(to);
    res.writeHead(206, { 'content-range': `bytes ${from}-${last}/${ALPHABET.length}` });
    res.end(ALPHABET.slice(Number(from), last + 1));
  },
  '/gzip': (req, res) => {
    const isAccepted = /\bgzip\b/.test(req.headers['accept-encoding'] ?? '');
    if (isAccepted) res.setHeader('content-encoding', 'gzip');
    res.end(isAccepted ? gzipSync('compressed text') : 'plain text');
  },
  /** Refuses before it has read the body, as applications with a limit of their own do. It reads the rest. */
  '/refuse': (req, res) => {
    res.writeHead(413);
    res.end('too large');
    req.resume();
  },
  '/busy': (_req, res) => {
    res.writeHead(429, { 'retry-after': '7', 'content-type': 'text/plain' });
    res.end('busy');
  },
  '/folder': (_req, res) => {
    res.writeHead(301, { location: '/folder/' });
    res.end();
  },
  '/folder/': (_req, res) => res.end('the folder'),
  /** The stream ends only if the query says so. */
  '/events': (_req, res, { searchParams }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    for (const name of ['one', 'two', 'three']) res.write(`data: ${name}\n\n`);
    if (searchParams.has('end')) res.end();
  },
  '/page': (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    res.end(`<!doctype html><title>Demo</title><link rel="icon" href="data:,">
<form method="post" action="/upload" enctype="multipart/form-data"><input type="file" name="file"><button>Send</button></form>`);
  },
};

/** Says the target as it arrived, byte for byte. */
function echo(req: IncomingMessage, res: ServerResponse): void {
  res.end(`${req.method} ${req.url}`);
}

/** Java's client offers `h2c` with its first request. */
const isWebSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade === 'websocket';

const server = createServer({ shouldUpgradeCallback: isWebSocket }, (req, res) => {
  res.setHeader('x-demo', 'yes');
  const url = new URL(req.url ?? '/', 'http://demo');
  (handlers[url.pathname] ?? echo)(req, res, url);
});

const OPCODE = { text: 1, close: 8 } as const;

/** Sends each text back. Clients of tests send short frames, each of which may arrive in any pieces. */
server.on('upgrade', (req, socket: Socket) => {
  const accept = createHash('sha1')
    .update(`${req.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  socket.on('error', () => socket.destroy());
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= 6) {
      const length = (bytes[1] ?? 0) & 0x7f;
      if (bytes.length < 6 + length) return;
      const opcode = (bytes[0] ?? 0) & 0x0f;
      const mask = bytes.subarray(2, 6);
      const payload = Buffer.from(bytes.subarray(6, 6 + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0)));
      bytes = bytes.subarray(6 + length);
      if (opcode === OPCODE.text || opcode === OPCODE.close)
        socket.write(Buffer.concat([Buffer.from([0x80 | opcode, payload.length]), payload]));
      if (opcode === OPCODE.close) socket.end();
    }
  });
});

server.listen(Number(process.argv[2]), '127.0.0.1');
