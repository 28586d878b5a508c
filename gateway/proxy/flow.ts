/** Flow control of a body: no faster than its reader reads, and in turn with other bodies. */
import type { Client } from '#gateway/bounds/clients.ts';
import type { Transfer, TransferScheduler } from './transfer-scheduler.ts';

/** Where the body comes from. */
interface Source {
  pause(): void;
  resume(): void;
}

export class Flow implements Transfer {
  readonly client: Client;
  readonly #scheduler: TransferScheduler;
  readonly #source: Source;
  #awaitsDrain = false;
  #awaitsSlot = false;
  #isOver = false;

  constructor(client: Client, scheduler: TransferScheduler, source: Source) {
    this.client = client;
    this.#scheduler = scheduler;
    this.#source = source;
  }

  get isBlocked(): boolean {
    return this.#awaitsDrain || this.#awaitsSlot;
  }

  /** Counts bytes that are passed on. @param pieces number of chunks in which they arrived */
  count(bytes: number, pieces = 1): void {
    if (this.#scheduler.pass(this, bytes, pieces)) return;
    this.#awaitsSlot = true;
    this.#source.pause();
  }

  /** Waits until the reader has read. */
  awaitDrain(): void {
    this.#awaitsDrain = true;
    this.#source.pause();
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

  /** Called when the body has ended. Its source may already send something else. */
  end(): void {
    this.#isOver = true;
    if (this.#awaitsSlot) this.#scheduler.leave(this);
  }

  #goOn(): void {
    if (!this.isBlocked && !this.#isOver) this.#source.resume();
  }
}
