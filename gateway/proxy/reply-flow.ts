/** The body of a reply on its way: no faster than the client reads, and than others are served beside it. */
import type { Client } from '#gateway/bounds/clients.ts';
import type { ClientResponse } from '#gateway/http/client-connection.ts';
import type { BulkTransfer } from './transfer-scheduler.ts';
import type { Exchange } from './exchange.ts';
import { writeLast } from './free-buffer.ts';
import type { BulkTransfer } from './transfer-scheduler.ts';
import type { Upstream } from './upstream.ts';

export class ReplyFlow implements BulkTransfer {
  readonly client: Client;
  readonly #res: ClientResponse;
  readonly #upstream: Upstream;
  readonly #exchange: Exchange;
  /** The client has to read first. */
  #awaitsDrain = false;
  #awaitsTurn = false;
  #isOver = false;

  /** @param exchange pauses and resumes what comes from the upstream */
  constructor(client: Client, res: ClientResponse, upstream: Upstream, exchange: Exchange) {
    this.client = client;
    this.#res = res;
    this.#upstream = upstream;
    this.#exchange = exchange;
  }

  write(chunk: Buffer): void {
    const res = this.#res;
    const { bulk, options } = this.#upstream;
    if (writeLast(res, res.socket, chunk, bulk) || res.writableLength < options.replyBufferBytes) return;
    this.#awaitsDrain = true;
    this.#exchange.pause();
  }

  count(bytes: number): void {
    if (this.#upstream.bulk.pass(this, bytes)) return;
    this.#awaitsTurn = true;
    this.#exchange.pause();
  }

  onDrain(): void {
    if (!this.#awaitsDrain) return;
    this.#awaitsDrain = false;
    this.#goOn();
  }

  onTurn(): void {
    this.#awaitsTurn = false;
    this.#goOn();
  }

  /** Nothing more comes of it, and its connection may be another reply's. */
  end(): void {
    this.#isOver = true;
    if (this.#awaitsTurn) this.#upstream.bulk.leave(this);
  }

  #goOn(): void {
    if (!this.#awaitsDrain && !this.#awaitsTurn && !this.#isOver) this.#exchange.resume();
  }
}
