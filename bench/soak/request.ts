/** One whole request and its whole answer. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly latencyMs: number;
}

/** A machine that stands still for seconds is no wrong answer; the report tells the slowest. */
const ANSWER_MS_MAX = 10_000;

export class Client {
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 });

  constructor(port: number) {
    this.#port = port;
  }

  /** Rejects when there is no whole answer in time. */
  send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: Buffer | null = null,
    isRepeated = false,
  ): Promise<Answer> {
    const beganMs = performance.now();
    return new Promise((resolve, reject) => {
      const req = request({ port: this.#port, host: '127.0.0.1', method, path, headers, agent: this.#agent });
      const timer = setTimeout(() => req.destroy(new Error('no answer in time')), ANSWER_MS_MAX);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      req.on('response', (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', fail);
        res.on('end', () => {
          clearTimeout(timer);
          const latencyMs = performance.now() - beganMs;
          const text = Buffer.concat(chunks).toString('latin1');
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text, latencyMs });
        });
      });
      req.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        // The kept-alive connection had just been closed: every client sends once more.
        if (!isRepeated && req.reusedSocket && error.code === 'ECONNRESET')
          this.send(method, path, headers, body, true).then(resolve, reject);
        else reject(error);
      });
      if (body === null) req.end();
      else req.setHeader('content-length', body.length).end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
