/** Sends the bytes of a case, and tells what came back and what the application saw. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Owner, startUpstream, type TestUpstream } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';
import { HOST } from './case.ts';

export interface Outcome {
  /** Statuses of the replies to the bytes of the case, without 100. */
  readonly statuses: readonly number[];
  /** Whether a request behind those of the case was answered on the same connection. */
  readonly isKept: boolean;
  /** The requests that the application saw, such as `POST / a.example:8080 "hello"`. */
  readonly seen: readonly string[];
  /** Everything that the client received. */
  readonly text: string;
}

const NEXT = `GET /next HTTP/1.1\r\n${HOST}\r\nConnection: close\r\n\r\n`;
const STATUS = /HTTP\/1\.1 (\d{3}) [\s\S]*?\r\n\r\n/g;
const ETAG = '"v1"';
const MODIFIED = 'Thu, 01 Jan 2026 00:00:00 GMT';
const ALLOW = 'GET, HEAD, POST, OPTIONS';

/** An application that answers as RFC 9110 asks, and that would switch to WebSocket if it were asked to. */
export class Application {
  /** The requests since the last exchange. The head of a request counts, even if its body never ends. */
  seen: string[] = [];
  total = 0;

  async start(owner: Owner): Promise<TestUpstream> {
    const upstream = await startUpstream(owner, (req, res) => this.#answer(req, res));
    upstream.server.on('upgrade', (req, socket) => {
      this.#see(req);
      const isKnown = req.headers['sec-websocket-version'] === '13';
      const status = isKnown ? '101 Switching Protocols' : '426 Upgrade Required';
      socket.end(
        `HTTP/1.1 ${status}\r\nDate: ${new Date().toUTCString()}\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n`,
      );
    });
    return upstream;
  }

  #see({ method, url, headers }: IncomingMessage): number {
    this.total++;
    // Many applications read Content_Length as Content-Length.
    const risky = Object.keys(headers).filter((name) => name.includes('_'));
    return this.seen.push([method, url, headers.host, ...risky].join(' ')) - 1;
  }

  #answer(req: IncomingMessage, res: ServerResponse): void {
    const at = this.#see(req);
    const { seen } = this;
    let body = '';
    req.setEncoding('latin1').on('data', (text: string) => {
      body += text;
    });
    req.on('end', () => {
      const trailers = req.rawTrailers.length === 0 ? '' : ` and ${req.rawTrailers.join(' ')}`;
      seen[at] = `${seen[at]} "${body}"${trailers}`;
      res.setHeaders(
        new Map([
          ['ETag', ETAG],
          ['Last-Modified', MODIFIED],
          ['Content-Type', 'text/plain'],
        ]),
      );
      if (req.method === 'DELETE' || req.method === 'OPTIONS') res.setHeader('Allow', ALLOW);
      res.writeHead(statusFor(req)).end(`hello of ${req.url}`);
    });
  }
}

function statusFor({ method, headers }: IncomingMessage): number {
  if (method === 'DELETE') return 405;
  if (method === 'OPTIONS') return 204;
  const match = headers['if-none-match'];
  if (match !== undefined) return match === '*' || match.replace(/^W\//, '') === ETAG ? 304 : 200;
  return headers['if-modified-since'] === MODIFIED ? 304 : 200;
}

/**
 * @param parts each further one is sent after the reply to the one before
 * @param isIncomplete no reply can come before the client ends its side
 */
export async function exchange(
  socket: Duplex,
  parts: readonly string[],
  application: Application,
  isIncomplete: boolean,
): Promise<Outcome> {
  application.seen = [];
  const { seen } = application;
  let text = '';
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  const closed = once(socket, 'close').then(() => {
    isClosed = true;
  });
  const replies = (): number[] =>
    [...text.matchAll(STATUS)].map(([, status]) => Number(status)).filter((status) => status !== 100);
  for (const [i, part] of parts.entries()) {
    if (isClosed) break;
    socket.write(part, 'latin1');
    if (!isIncomplete) await until(() => isClosed || replies().length > i, `a reply to part ${i}`);
  }
  if (isIncomplete) socket.end();
  else if (!isClosed) socket.write(NEXT);
  await closed;
  const isKept = seen.some((line) => line.includes('/next '));
  return {
    statuses: isKept ? replies().slice(0, -1) : replies(),
    isKept,
    seen: seen.filter((line) => !line.includes('/next ')),
    text,
  };
}
