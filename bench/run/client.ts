/** A well-behaved HTTP client. It sends complete requests, and expects complete replies within a time limit. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http';

/** A body consists of this digit only. A long number is valid JSON. */
const DIGIT = '1';
/** Larger bodies are sent in pieces, like those of a client on another machine. */
const PIECE_BYTES = 16_384;
const PIECE_MS = 10;

export interface ClientOptions {
  readonly port: number;
  readonly address?: string;
  /** A request without a reply after this time has failed. */
  readonly timeoutMs: number;
}

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Size of the body. */
  readonly bytes?: number;
  /** How the body is sent: with Content-Length, which is the default; in chunks; or after 100 Continue. */
  readonly framing?: 'length' | 'chunked' | 'expect';
  /** Whether to use a new connection for this request. */
  readonly isAlone?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Time from the last byte sent to the last byte received. */
  readonly latencyMs: number;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #agent: Agent;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 128 });
  }

  /** @throws Error when there is no complete reply in time */
  send(ask: Ask, isRepeated = false): Promise<Answer> {
    const { port, address = '127.0.0.1', timeoutMs } = this.#options;
    const { method, path, headers = {}, bytes = 0, framing = 'length', isAlone = false } = ask;
    let sentMs = performance.now();
    return new Promise((resolve, reject) => {
      const req = request({
        ...{ host: '127.0.0.1', port, localAddress: address, method, path },
        agent: isAlone ? false : this.#agent,
        headers: {
          host: 'bench.example',
          ...(bytes === 0 ? {} : { 'content-type': 'application/json' }),
          ...(bytes > 0 && framing !== 'chunked' ? { 'content-length': bytes } : {}),
          ...(framing === 'chunked' ? { 'transfer-encoding': 'chunked' } : {}),
          ...(framing === 'expect' ? { expect: '100-continue' } : {}),
          ...headers,
        },
      });
      const timer = setTimeout(() => req.destroy(new Error('no reply in time')), timeoutMs);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      req.on('response', (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', () => fail(new Error('reply cut off')));
        res.on('end', () => {
          clearTimeout(timer);
          const text = Buffer.concat(chunks).toString('latin1');
          const latencyMs = performance.now() - sentMs;
          // The server has replied without 100 Continue, so the body is not sent.
          if (!req.writableEnded) req.destroy();
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text, latencyMs });
        });
      });
      req.on('error', (error: NodeJS.ErrnoException) => {
        // The server has just closed the kept-alive connection. Every HTTP client repeats the request in this case.
        const isStale = !isRepeated && req.reusedSocket && error.code === 'ECONNRESET';
        if (!isStale) return fail(error);
        clearTimeout(timer);
        this.send(ask, true).then(resolve, reject);
      });
      const sendBody = (left: number): void => {
        if (req.destroyed) return;
        if (left <= PIECE_BYTES) {
          sentMs = performance.now();
          req.end(Buffer.alloc(left, DIGIT));
          return;
        }
        req.write(Buffer.alloc(PIECE_BYTES, DIGIT));
        setTimeout(() => sendBody(left - PIECE_BYTES), PIECE_MS);
      };
      if (framing !== 'expect') sendBody(bytes);
      else {
        req.once('continue', () => sendBody(bytes));
        req.flushHeaders();
      }
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
