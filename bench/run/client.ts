/** A well-behaved HTTP client. It sends complete requests, and expects complete replies within a time limit. */
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** A body consists of this digit only. A long number is valid JSON. */
const DIGIT = '1';

export interface ClientOptions {
  /** The ports of servers, which are asked in turn. */
  readonly ports: readonly number[];
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
  /** Whether the body is sent in chunks instead of with Content-Length. */
  readonly isChunked?: boolean;
  /** Whether to use a new connection for this request. */
  readonly isAlone?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly latencyMs: number;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 });
  #sent = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** @throws Error when there is no complete reply in time */
  async send(ask: Ask, isRepeated = false): Promise<Answer> {
    const { ports, address = '127.0.0.1', timeoutMs } = this.#options;
    const port = ports[this.#sent++ % ports.length];
    const { method, path, headers = {}, bytes = 0, isChunked = false, isAlone = false } = ask;
    const framing = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': bytes };
    const body = bytes === 0 ? {} : { 'content-type': 'application/json', ...framing };
    const signal = AbortSignal.timeout(timeoutMs);
    const began = performance.now();
    const req = request({
      ...{ host: '127.0.0.1', port, localAddress: address, method, path, signal },
      headers: { host: 'bench.example', ...body, ...headers },
      agent: isAlone ? false : this.#agent,
    });
    // An error after the head of the reply also ends the reply.
    req.on('error', () => undefined);
    req.end(Buffer.alloc(bytes, DIGIT));
    try {
      const [res] = (await once(req, 'response')) as [IncomingMessage];
      const received = await text(res);
      const latencyMs = performance.now() - began;
      return { status: res.statusCode ?? 0, headers: res.headers, text: received, latencyMs };
    } catch (error) {
      if (signal.aborted) throw new Error('no reply in time');
      // The server has just closed the kept-alive connection. Every HTTP client repeats the request in this case.
      const isStale = req.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (isRepeated || !isStale) throw error;
      return this.send(ask, true);
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}
