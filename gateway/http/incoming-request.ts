/** A request of node:http. Its body does not pass through the stream of node:http, which costs more than the rest. */
import type { ClientRequest } from './client-exchange.ts';
import * as http from './node-http.ts';
import { type PieceListener, RequestBody } from './request-body.ts';

export class IncomingRequest extends http.IncomingMessage implements ClientRequest {
  /** Receives a call if the pieces of the body are too small. It is set before the body arrives. */
  listener: PieceListener | null = null;
  #body: RequestBody | null = null;

  get body(): RequestBody | null {
    const { listener, socket, complete } = this;
    if (listener === null) return null;
    this.#body ??= new RequestBody(socket, listener, () => this.#readMore(), complete);
    return this.#body;
  }

  /** The first call tells node:http that the body has a reader. Later ones do nothing, because no piece gets to the stream. */
  #readMore(): void {
    this.read(0);
    this.socket.resume();
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    const body = Buffer.isBuffer(chunk) ? this.body : null;
    // On false, node:http stops reading.
    if (body !== null) return body.arrive(chunk as Buffer);
    const hasRoom = super.push(chunk, encoding);
    if (chunk === null && this.#body !== null) {
      this.#body.finish();
      // Ends the empty stream. Until then, node:http would keep the request.
      this.read(0);
    }
    return hasRoom;
  }
}
