/** One polite request: sent, answered in time and correctly, or not. */
import { type Agent, type ClientRequest, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { VICTIM_HEADER } from './upstream-paths.ts';

/** Without an answer after this time a request counts as failed. */
export const ANSWER_MS_MAX = 3000;
/** A body larger than this arrives in pieces, as it does from a visitor who is not on the same machine. */
const PIECE_BYTES = 16_384;
const PIECE_MS = 10;

export interface Step {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly bytes?: number;
  readonly hasKey?: boolean;
}

export interface From {
  readonly address: string;
  readonly key: string;
  readonly port: number;
  readonly isTls: boolean;
  /** null: a connection of its own. */
  readonly agent: Agent | null;
}

export interface Outcome {
  /** null: status 200, and about what was asked. */
  readonly failure: string | null;
  /** Sent once more, as the kept-alive connection had just been closed: what every HTTP client does. */
  readonly repeated: boolean;
  /** From the last byte sent to the last received. */
  readonly latencyMs: number;
}

export function ask(from: From, step: Step, repeated = false): Promise<Outcome> {
  const bytes = step.bytes ?? 0;
  let sentMs = performance.now();
  return new Promise((resolve) => {
    const done = (failure: string | null): void => {
      clearTimeout(timer);
      resolve({ failure, repeated, latencyMs: performance.now() - sentMs });
    };
    const req = (from.isTls ? requestTls : request)({
      rejectUnauthorized: false,
      port: from.port,
      host: '127.0.0.1',
      localAddress: from.address,
      method: step.method,
      path: step.path,
      agent: from.agent ?? false,
      headers: {
        host: 'bench.example',
        [VICTIM_HEADER]: '1',
        ...(step.hasKey === true ? { 'x-api-key': from.key } : {}),
        ...(bytes === 0 ? {} : { 'content-type': 'application/json', 'content-length': bytes }),
      },
    });
    const timer = setTimeout(() => {
      done('no answer in time');
      req.destroy();
    }, ANSWER_MS_MAX);
    req.on('response', (res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      res.on('error', () => done('cut answer'));
      res.on('end', () => {
        if (res.statusCode !== 200) done(`status ${res.statusCode}`);
        else done(text === expected(step) ? null : 'wrong answer');
      });
    });
    req.on('error', (error: NodeJS.ErrnoException) => {
      if (!repeated && req.reusedSocket && error.code === 'ECONNRESET') {
        clearTimeout(timer);
        ask(from, step, true).then(resolve);
      } else done(error.code ?? error.message);
    });
    sendBody(req, bytes, () => {
      sentMs = performance.now();
    });
  });
}

function sendBody(req: ClientRequest, bytes: number, whenSent: () => void): void {
  const send = (left: number): void => {
    if (req.destroyed) return;
    if (left <= PIECE_BYTES) {
      whenSent();
      req.end(Buffer.alloc(left, 'v'));
      return;
    }
    req.write(Buffer.alloc(PIECE_BYTES, 'v'));
    setTimeout(() => send(left - PIECE_BYTES), PIECE_MS);
  };
  send(bytes);
}

function expected({ method, path, bytes = 0 }: Step): string {
  return JSON.stringify({ method, path, bytes });
}
