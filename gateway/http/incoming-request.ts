/** A request as node:http parses it, which counts the pieces of its body: read, held back or thrown away, they all come here. */

import type { Clock } from '#shared/clock.ts';
import * as http from './node-http.ts';
import { PieceCount } from './piece-count.ts';

export interface PieceListener {
  readonly clock: Clock;
  /** The body comes in too small pieces. Called once; the rest of the body is dropped. */
  onSmallPieces(req: IncomingRequest): void;
}

export class IncomingRequest extends http.IncomingMessage {
  /** Set before any of the body comes. */
  listener: PieceListener | null = null;
  /** null until some of the body has come. */
  pieces: PieceCount | null = null;

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
