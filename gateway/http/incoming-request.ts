/** A request of node:http that counts the pieces of its body, whether they are read or thrown away. */

import type { Clock } from '#shared/clock.ts';
import type { ClientRequest, RequestBody } from './client-exchange.ts';
import * as http from './node-http.ts';
import { PieceCount } from './piece-count.ts';

export interface PieceListener {
  readonly clock: Clock;
  /** The body comes in too small pieces. Called once. The rest of the body is dropped. */
  onSmallPieces(body: RequestBody): void;
}

export class IncomingRequest extends http.IncomingMessage implements ClientRequest {
  /** Set before the body comes. */
  listener: PieceListener | null = null;
  /** null: no body has come yet. */
  pieces: PieceCount | null = null;

  get body(): this {
    return this;
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    const { listener } = this;
    if (listener === null) return super.push(chunk, encoding);
    if (this.pieces?.isCut === true) return true;
    if (!Buffer.isBuffer(chunk)) return super.push(chunk, encoding);
    this.pieces ??= new PieceCount(listener.clock());
    if (this.pieces.add(chunk.length)) return super.push(chunk, encoding);
    listener.onSmallPieces(this);
    return true;
  }
}
