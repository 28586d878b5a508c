/** A request of node:http that counts the pieces of its body, whether they are read or discarded. */

import type { Clock } from '#shared/clock.ts';
import type { ClientRequest, RequestBody } from './client-exchange.ts';
import * as http from './node-http.ts';
import { PieceCount } from './piece-count.ts';

export interface PieceListener {
  readonly clock: Clock;
  /** Called once if the pieces of the body are too small. The rest of the body is discarded. */
  onSmallPieces(body: RequestBody): void;
}

export class IncomingRequest extends http.IncomingMessage implements ClientRequest {
  /** Receives a call if the pieces are too small. It is set before the body arrives. */
  listener: PieceListener | null = null;
  /** Called with the number of bytes when a part of the body arrives while the request waits for the reply before it. */
  onHeld: ((bytes: number) => void) | null = null;
  /** Counts the pieces of the body; null until the body begins. */
  pieces: PieceCount | null = null;

  get body(): this {
    return this;
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    const { listener } = this;
    if (listener === null) return super.push(chunk, encoding);
    if (this.pieces?.isCut === true) return true;
    if (!Buffer.isBuffer(chunk)) return super.push(chunk, encoding);
    this.onHeld?.(chunk.length);
    this.pieces ??= new PieceCount(listener.clock());
    if (this.pieces.add(chunk.length)) return super.push(chunk, encoding);
    listener.onSmallPieces(this);
    return true;
  }
}
