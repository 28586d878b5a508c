/** Flow control of a reply body: no faster than its client reads, and in turn with other bodies. */
import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientResponse } from '#gateway/http/client-exchange.ts';
import { writeLast } from '#gateway/http/free-buffer.ts';
import type { Exchange } from './exchange.ts';
import type { Transfer } from './transfer-scheduler.ts';
import type { Upstream } from './upstream.ts';

export class ReplyFlow implements Transfer {
  readonly client: Client;
  readonly #res: ClientResponse;
  readonly #upstream: Upstream;
  readonly #exchange: Exchange;
  #awaitsDrain = false;
  #awaitsSlot = false;
  #isOver = false;

  constructor(client: Client, res: ClientResponse, upstream: Upstream, exchange: Exchange) {
    this.client = client;
    this.#res = res;
    this.#upstream = upstream;
    this.#exchange = exchange;
  }

  write(chunk: Buffer): void {
    const res = this.#res;
    const { scheduler, replyBufferBytes } = this.#upstream;
    if (writeLast(res, chunk, scheduler) || res.writableLength < replyBufferBytes) return;
    this.#awaitsDrain = true;
    this.#exchange.pause();
  }

  count(bytes: number): void {
    if (this.#upstream.scheduler.pass(this, bytes)) return;
    this.#awaitsSlot = true;
    this.#exchange.pause();
  }

  onDrain(): void {
    if (!this.#awaitsDrain) return;
    this.#awaitsDrain = false;
    this.#goOn();
  }

  resume(): void {
    this.#awaitsSlot = false;
    this.#goOn();
  }

  /** Called when the body has ended. Its connection may already serve another reply. */
  end(): void {
    this.#isOver = true;
    if (this.#awaitsSlot) this.#upstream.scheduler.leave(this);
  }

  #goOn(): void {
    if (!this.#awaitsDrain && !this.#awaitsSlot && !this.#isOver) this.#exchange.resume();
  }
}
