/**
 * Large bodies in small portions. A fast peer's body could keep the event loop busy for as long as it comes: libuv reads
 * up to 2 MB of one socket before it looks at the next, and of 64 downloads that is a tenth of a second in which nobody
 * else is served. So in one turn of the loop all bodies together pass on so much; who has more waits for a later turn,
 * clients in turn, however many bodies one of them has.
 */
import type { Client } from '#gateway/bounds/clients.ts';

/** A body on its way. */
export interface BulkTransfer {
  readonly client: Client;
  /** Passes on more, in this very call or later. Not called after `leave`. */
  onTurn(): void;
}

/** About half a millisecond's work of reading and writing. */
const BYTES_PER_TURN = 262_144;
/** A piece costs this much, however small it is: to hand it on takes a microsecond. */
const PIECE_BYTES = 512;
/** As many as are expected to use that up: what is read at once is mostly 64 KiB. */
const TRANSFERS_PER_TURN = 4;
/** After so much there are that many buffers to collect, less what was freed and what is still on its way. */
const BYTES_PER_COLLECTION = 8 * 1024 * 1024;

export class BulkTurns {
  /** Who waits, by client; the client whose turn is next comes first. */
  readonly #queues = new Map<Client, Set<BulkTransfer>>();
  readonly #collect: () => void;
  #left = BYTES_PER_TURN;
  /** Of what has been passed on since the last collection, what was not freed. */
  #garbageBytes = 0;
  #isArmed = false;

  /** @param collect frees the buffers of what has been passed on */
  constructor(collect: () => void) {
    this.#collect = collect;
  }

  /**
   * @param pieces in how many the bytes have come
   * @returns false: the portion is used up, and `onTurn` will say when to go on
   */
  pass(transfer: BulkTransfer, bytes: number, pieces = 1): boolean {
    this.#left -= Math.max(bytes, pieces * PIECE_BYTES);
    this.#garbageBytes += bytes;
    this.#arm();
    if (this.#left > 0) return true;
    const { client } = transfer;
    const queue = this.#queues.get(client);
    if (queue === undefined) this.#queues.set(client, new Set([transfer]));
    else queue.add(transfer);
    return false;
  }

  /** So many bytes of what was passed on need not be collected. */
  freed(bytes: number): void {
    this.#garbageBytes = Math.max(0, this.#garbageBytes - bytes);
  }

  /** Does nothing for one that does not wait. */
  leave(transfer: BulkTransfer): void {
    if (this.#queues.size === 0) return;
    const queue = this.#queues.get(transfer.client);
    if (queue?.delete(transfer) === true && queue.size === 0) this.#queues.delete(transfer.client);
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => this.#onTurn());
  }

  #onTurn(): void {
    this.#isArmed = false;
    this.#left = BYTES_PER_TURN;
    if (this.#garbageBytes >= BYTES_PER_COLLECTION) {
      this.#garbageBytes = 0;
      this.#collect();
    }
    for (let i = 0; i < TRANSFERS_PER_TURN && this.#left > 0; i++) {
      const transfer = this.#next();
      if (transfer === undefined) return;
      transfer.onTurn();
    }
    if (this.#queues.size > 0) this.#arm();
  }

  /** Takes the first one of the first client, which goes to the end of the line. */
  #next(): BulkTransfer | undefined {
    for (const [client, queue] of this.#queues) {
      this.#queues.delete(client);
      for (const transfer of queue) {
        queue.delete(transfer);
        if (queue.size > 0) this.#queues.set(client, queue);
        return transfer;
      }
    }
    return undefined;
  }
}
