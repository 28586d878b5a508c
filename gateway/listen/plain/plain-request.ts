/** A plain request, and its body. */
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { ClientRequest, RequestBody } from '#gateway/http/client-exchange.ts';
import type { PieceListener } from '#gateway/http/incoming-request.ts';
import { PieceCount } from '#gateway/http/piece-count.ts';
import type { PlainHead } from './plain-head.ts';

export class PlainRequest implements ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
  readonly body: PlainBody | null;
  readonly #contentLength: number;

  constructor(
    { method, target, rawHeaders, contentLength }: PlainHead,
    socket: Socket,
    body: PlainBody | null,
  ) {
    this.method = method;
    this.url = target;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.body = body;
    this.#contentLength = contentLength;
  }

  get complete(): boolean {
    return this.body === null || this.body.complete;
  }

  get headers(): ClientRequest['headers'] {
    return { 'content-length': String(this.#contentLength) };
  }
}

/** A body with a length, as a stream. It is small or arrives at once, so the socket is never paused. */
export class PlainBody extends Readable implements RequestBody {
  readonly socket: Socket;
  pieces: PieceCount | null = null;
  readonly #listener: PieceListener;
  #left: number;

  constructor(socket: Socket, contentLength: number, listener: PieceListener) {
    super();
    this.socket = socket;
    this.#left = contentLength;
    this.#listener = listener;
    // Readers check `errored` to detect a broken body.
    this.on('error', () => undefined);
  }

  get complete(): boolean {
    return this.#left === 0;
  }

  /** Uses the bytes that belong to the body. @returns their number */
  arrive(bytes: Buffer): number {
    const piece = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left);
    this.#left -= piece.length;
    this.pieces ??= new PieceCount(this.#listener.clock());
    if (this.pieces.isCut) return piece.length;
    if (!this.pieces.add(piece.length)) {
      this.#listener.onSmallPieces(this);
      return piece.length;
    }
    this.push(piece);
    if (this.#left === 0) this.push(null);
    return piece.length;
  }

  override _read(): void {}
}
