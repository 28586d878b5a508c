/** A request to the admin listener. Its connection is closed if the body comes in too small pieces. */
import { closeUnread } from '#gateway/http/lingering-close.ts';
import * as http from '#gateway/http/node-http.ts';
import { PieceCount } from '#gateway/http/request-body.ts';

const TOO_SLOW = 'HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n';

export class CountedRequest extends http.IncomingMessage {
  readonly #pieces = new PieceCount();

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (!Buffer.isBuffer(chunk)) return super.push(chunk, encoding);
    if (this.#pieces.isCut) return true;
    if (this.#pieces.add(chunk.length)) return super.push(chunk, encoding);
    closeUnread(this.socket, TOO_SLOW);
    return true;
  }
}
