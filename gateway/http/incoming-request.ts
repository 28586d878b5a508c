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

/** When this number of bytes of a body waits to be read, the gateway stops reading from the client. */
export const BODY_AHEAD_BYTES = 16_384;

export class IncomingRequest extends http.IncomingMessage implements ClientRequest {
  /** Receives a call if the pieces are too small. It is set before the body arrives. */
  listener: PieceListener | null = null;
  /** Set while the request waits, for the reply before it or for a connection. Called when a part of the body has arrived. */
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
    this.pieces ??= new PieceCount(listener.clock());
    if (!this.pieces.add(chunk.length)) {
      listener.onSmallPieces(this);
      return true;
    }
    const hasRoom = super.push(chunk, encoding);
    this.onHeld?.(chunk.length);
    // On false, node:http stops reading. The mark of a stream is too high: with TLS it is 64 KiB.
    return hasRoom && this.readableLength < BODY_AHEAD_BYTES;
  }
}
