/**
 * Schedules large bodies fairly. Without it, fast bodies would block the event loop: libuv reads up to 2 MB from one
 * socket before it serves the next, so 64 downloads delay everything else for a tenth of a second. Here all bodies
 * together may forward a fixed number of bytes in each event-loop tick. Bodies that exceed it wait for a later tick,
 * and clients are served in turn, no matter how many bodies each has.
 */
import type { Client } from '#gateway/bounds/clients.ts';
import { Turns } from '#gateway/bounds/turns.ts';

export interface Transfer {
  readonly client: Client;
  /** Called when it may forward more data. Not called after `leave`. */
  resume(): void;
}

/** About half a millisecond of reading and writing. */
const BYTES_PER_TICK = 262_144;
/** Each piece counts as at least this number of bytes, because even a small one takes a microsecond. */
const PIECE_BYTES = 512;
/** Number of waiting bodies that may continue in one tick. A read usually returns 64 KiB, so four use up the budget. */
const TRANSFERS_PER_TICK = 4;
/** After this number of bytes that were not freed explicitly, the young generation is collected. */
const BYTES_PER_COLLECTION = 8 * 1024 * 1024;

export class TransferScheduler {
  readonly #waiting = new Turns<Client, Transfer>();
  readonly #collect: () => void;
  #left = BYTES_PER_TICK;
  /** Bytes forwarded since the last collection, without those that were freed explicitly. */
  #garbageBytes = 0;
  #isArmed = false;

  constructor(collect: () => void) {
    this.#collect = collect;
  }

  /**
   * Counts data that is being forwarded.
   *
   * @param pieces number of chunks in which the bytes arrived
   * @returns false if the budget of this tick is used up: pause until `resume`
   */
  pass(transfer: Transfer, bytes: number, pieces = 1): boolean {
    this.#left -= Math.max(bytes, pieces * PIECE_BYTES);
    this.#garbageBytes += bytes;
    this.#arm();
    if (this.#left > 0) return true;
    this.#waiting.add(transfer.client, transfer);
    return false;
  }

  freed(bytes: number): void {
    this.#garbageBytes = Math.max(0, this.#garbageBytes - bytes);
  }

  leave(transfer: Transfer): void {
    this.#waiting.delete(transfer.client, transfer);
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => this.#onTick());
  }

  #onTick(): void {
    this.#isArmed = false;
    this.#left = BYTES_PER_TICK;
    if (this.#garbageBytes >= BYTES_PER_COLLECTION) {
      this.#garbageBytes = 0;
      this.#collect();
    }
    for (let i = 0; i < TRANSFERS_PER_TICK && this.#left > 0; i++) {
      const transfer = this.#waiting.next();
      if (transfer === undefined) return;
      transfer.resume();
    }
    if (!this.#waiting.isEmpty) this.#arm();
  }
}

/** Where the body comes from. */
interface Source {
  pause(): void;
  resume(): void;
}

/** Flow control of a body: no faster than its reader reads, and in turn with other bodies. */
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
