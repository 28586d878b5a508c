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
