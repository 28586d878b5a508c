/** Writes the head of a request and its body to the upstream, as the parts of the body come. */
import type { Socket } from 'node:net';
import type { BodySink } from './exchange.ts';

interface WrittenExchange {
  /** Called before the first byte is written. */
  onBegin(): void;
  /** Called when everything is written. */
  onEnd(): void;
}

export class BodyWriter implements BodySink {
  readonly #socket: Socket;
  readonly #exchange: WrittenExchange;
  readonly #isChunked: boolean;
  /** Text before the next part: the head, or the end of the chunk before it. */
  #before: string;
  #isBegun = false;

  /** @param isChunked whether the head announces chunks, and not a length */
  constructor(socket: Socket, head: string, isChunked: boolean, exchange: WrittenExchange) {
    this.#socket = socket;
    this.#before = head;
    this.#isChunked = isChunked;
    this.#exchange = exchange;
  }

  begin(): void {
    this.#socket.write(this.#takeBefore(''), 'latin1');
  }

  write(part: Buffer): boolean {
    const socket = this.#socket;
    const before = this.#takeBefore(this.#isChunked ? `${part.length.toString(16)}\r\n` : '');
    if (this.#isChunked) this.#before = '\r\n';
    if (before === '') socket.write(part);
    else {
      socket.cork();
      socket.write(before, 'latin1');
      // The part comes last, because only the last buffer of a write is freed.
      socket.write(part);
      socket.uncork();
    }
    // Usually the kernel has taken everything by now, although the stream announces a drain.
    return socket.writableLength === 0 || !socket.writableNeedDrain;
  }

  end(): void {
    const before = this.#takeBefore(this.#isChunked ? '0\r\n\r\n' : '');
    if (before !== '') this.#socket.write(before, 'latin1');
    this.#exchange.onEnd();
  }

  #takeBefore(more: string): string {
    if (!this.#isBegun) this.#exchange.onBegin();
    this.#isBegun = true;
    const before = this.#before + more;
    this.#before = '';
    return before;
  }
}
