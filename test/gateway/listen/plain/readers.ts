/** Reads the same bytes in two ways: with node:http alone, and with the gateway's own parser in front of it. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { Bound } from '#gateway/bounds/bounds.ts';
import { Clients } from '#gateway/bounds/clients.ts';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { DateField } from '#gateway/http/date-field.ts';
import { RequestOrigin } from '#gateway/http/request-origin.ts';
import { Floods } from '#gateway/listen/connection/floods.ts';
import { Pipelining } from '#gateway/listen/connection/pipelining.ts';
import { PlainConnection, type PlainConnectionOptions } from '#gateway/listen/plain/plain-connection.ts';
import type { PlainRequest } from '#gateway/listen/plain/plain-request.ts';

export interface ReadRequest {
  readonly method: string;
  readonly target: string;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  /** The body in latin1. */
  body: string;
  isComplete: boolean;
}

export interface Reading {
  readonly requests: readonly ReadRequest[];
  /** Number of requests that the own parser read. */
  readonly plain: number;
  /** The bytes that the own parser gave to node:http then, latin1; null if there is none. */
  readonly handedOver: string | null;
  /** Numbers of the requests whose reply has a body, in the order of the replies. */
  readonly replied: readonly number[];
  /** Statuses of all replies. */
  readonly statuses: readonly number[];
  readonly isClosed: boolean;
}

/** When the server writes the reply. */
export type ReplyAt = 'head' | 'end' | 'later';

/** The server's end of an in-memory connection. */
class End extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  sent = '';

  constructor() {
    super({ allowHalfOpen: true });
    this.on('error', () => undefined);
  }

  override _read(): void {
    // The test pushes data.
  }

  override _write(chunk: Buffer, _encoding: string, written: () => void): void {
    this.sent += chunk.toString('latin1');
    written();
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }
}

interface Answerable {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly complete: boolean;
  /** Calls back for each piece of the body, and at its end. */
  readBody(onPiece: (piece: Buffer) => void, onEnd: () => void): void;
}

interface Answer {
  writeHead(status: number, headers: string[]): unknown;
  end(text: string, encoding: 'latin1'): unknown;
}

interface Open {
  readonly end: End;
  readonly requests: ReadRequest[];
  readonly replyAt: ReplyAt;
  plain: number;
  handedOver: string | null;
}

export class Readers {
  readonly #http: Server;
  readonly #plain: PlainConnectionOptions;
  readonly #open = new Map<Duplex, Open>();

  constructor() {
    this.#http = createServer({
      requireHostHeader: false,
      maxHeaderSize: 16_384,
      shouldUpgradeCallback: () => false,
    });
    this.#http.maxHeadersCount = 256;
    const onRequest = (req: IncomingMessage, res: ServerResponse<IncomingMessage>): void => {
      const { method, url, rawHeaders } = req;
      const complete = (): boolean => req.complete;
      this.#answer(
        req.socket,
        {
          method,
          url,
          rawHeaders,
          readBody(onPiece, onEnd) {
            req
              .on('data', onPiece)
              .on('error', () => undefined)
              .on('end', onEnd);
          },
          get complete() {
            return complete();
          },
        },
        res,
      );
    };
    this.#http.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest);
    this.#http.on('connect', (_req, socket) => socket.destroy());
    this.#http.on('clientError', (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      else socket.destroy();
    });
    this.#plain = {
      readsRequests: true,
      clock: () => 0,
      date: new DateField(() => 0),
      keepAlive: 'timeout=5',
      pieces: { onSmallPieces: () => undefined },
      pipelining: unboundedPipelining(),
      unusedMs: 1,
      idleMs: 1,
      onRequest: (_connection, req, res) => {
        const open = this.#open.get(req.socket);
        if (open !== undefined) open.plain++;
        this.#answer(req.socket, readable(req), res);
      },
      onClientError: (_error, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      onHandOver: ({ socket }) => {
        const open = this.#open.get(socket);
        if (open !== undefined) {
          // The socket contains all unread bytes again, so the test can read them.
          const left: Buffer | null = socket.read();
          open.handedOver = left?.toString('latin1') ?? '';
          if (left !== null) socket.unshift(left);
        }
        this.#http.emit('connection', socket);
      },
    };
  }

  #answer(socket: Duplex, req: Answerable, res: Answer): void {
    const open = this.#open.get(socket);
    if (open === undefined) return;
    const { method = '', url = '', rawHeaders } = req;
    const read: ReadRequest = { method, target: url, fields: rawHeaders, body: '', isComplete: false };
    open.requests.push(read);
    const reply = (): void => {
      const body = `reply ${open.requests.indexOf(read)}`;
      res.writeHead(200, ['Content-Length', String(body.length)]);
      res.end(body, 'latin1');
    };
    const over = (): void => {
      read.isComplete = req.complete;
      if (open.replyAt === 'end') reply();
    };
    req.readBody((piece) => {
      read.body += piece.toString('latin1');
    }, over);
    if (open.replyAt === 'head') reply();
    else if (open.replyAt === 'later') setImmediate(reply);
  }

  /** @param cuts ascending positions at which the bytes are split */
  async read(
    bytes: Buffer,
    cuts: readonly number[],
    way: 'own' | 'node',
    replyAt: ReplyAt,
    isSlow = false,
  ): Promise<Reading> {
    const end = new End();
    const open: Open = { end, requests: [], replyAt, plain: 0, handedOver: null };
    const socket = end as unknown as Socket;
    this.#open.set(socket, open);
    if (way === 'node') this.#http.emit('connection', socket);
    else
      new PlainConnection(
        new ClientConnection(
          socket,
          new RequestOrigin({ remoteAddress: '127.0.0.1' }, { kind: 'none' }),
          null,
        ),
        this.#plain,
      );
    let from = 0;
    for (const to of [...cuts, bytes.length]) {
      if (to > from && !end.destroyed) end.push(bytes.subarray(from, to));
      from = to;
      if (isSlow) await turn();
    }
    await settled(open);
    this.#open.delete(socket);
    const isClosed = end.destroyed || end.writableEnded;
    const statuses = [...end.sent.matchAll(/HTTP\/1\.1 (\d\d\d)/g)].map(([, status]) => Number(status));
    end.destroy();
    const replied = [...end.sent.matchAll(/reply (\d+)/g)].map(([, number]) => Number(number));
    return {
      requests: open.requests,
      plain: open.plain,
      handedOver: open.handedOver,
      replied,
      statuses,
      isClosed,
    };
  }
}

function readable(req: PlainRequest): Answerable {
  const { method, url, rawHeaders, body } = req;
  return {
    ...{ method, url, rawHeaders },
    get complete() {
      return req.complete;
    },
    readBody(onPiece, onEnd) {
      if (body === null) onEnd();
      else {
        const onArrival = (): void => {
          for (let part = body.take(); part !== null; part = body.take()) onPiece(part);
          if (body.complete) onEnd();
        };
        body.onArrival = onArrival;
        onArrival();
      }
    },
  };
}

/** Resolves when nothing has happened for some event-loop ticks. */
async function settled({ end, requests }: Open): Promise<void> {
  let before = '';
  for (let quiet = 0; quiet < 3; ) {
    await turn();
    const now = `${requests.length} ${end.sent.length} ${end.readableLength} ${requests.at(-1)?.body.length} ${end.destroyed}`;
    quiet = now === before ? quiet + 1 : 0;
    before = now;
  }
}

export function unboundedPipelining(): Pipelining {
  const max = Number.MAX_SAFE_INTEGER;
  const bound = new Bound('pipelined', { total: max, perClient: max }, () => undefined);
  return new Pipelining(
    bound,
    new Floods({ clients: new Clients(), connections: new Map(), refuse: () => undefined }),
  );
}
