/**
 * Sends the body of a request to the upstream while it arrives: in turn with other bodies, and no faster than the
 * upstream reads.
 */
import type { Client } from '#gateway/bounds/clients.ts';
import { JOINED_BYTES_MAX, type RequestBody } from '#gateway/http/request-body.ts';
import type { BodySink, SentBody } from './exchange.ts';
import type { Transfer, TransferScheduler } from './transfer-scheduler.ts';

/** Connections to the upstream are scarce, so bodies up to this size are received before one is taken. */
export const AWAITED_BYTES_MAX = 16_384;

export interface BodyOwner {
  /** Set before the head of the request is sent, alone or with data. */
  hasReachedUpstream: boolean;
  /** Called when the upstream has to read before more is sent, and when it has read. */
  onBodyBlocked(isBlocked: boolean): void;
  /** Called when the whole body was passed to the connection. */
  onBodyEnd(): void;
}

export class Upload implements SentBody, Transfer {
  readonly client: Client;
  readonly #body: RequestBody;
  readonly #scheduler: TransferScheduler;
  readonly #owner: BodyOwner;
  /** null before the start and after the end. */
  #sink: BodySink | null = null;
  #awaitsDrain = false;
  #awaitsSlot = false;
  /** Whether small pieces wait for others until the end of the event-loop tick. */
  #isJoining = false;
  #piecesPassed = 0;

  constructor(body: RequestBody, client: Client, scheduler: TransferScheduler, owner: BodyOwner) {
    this.client = client;
    this.#body = body;
    this.#scheduler = scheduler;
    this.#owner = owner;
  }

  whenBegun(then: () => void): void {
    this.#body.whenBegun(then);
  }

  start(sink: BodySink): void {
    this.#sink = sink;
    this.#body.onArrival = this.#onArrival;
    if (this.#body.waitingBytes > 0 || this.#body.complete) {
      this.#onArrival();
      return;
    }
    this.#owner.hasReachedUpstream = true;
    sink.begin();
  }

  onDrain(): void {
    if (!this.#awaitsDrain) return;
    this.#awaitsDrain = false;
    this.#owner.onBodyBlocked(false);
    this.#send();
  }

  resume(): void {
    this.#awaitsSlot = false;
    this.#send();
  }

  stop(): void {
    this.#sink = null;
    if (this.#awaitsSlot) this.#scheduler.leave(this);
    if (this.#body.onArrival === this.#onArrival) this.#body.onArrival = null;
  }

  readonly #onArrival = (): void => {
    const { waitingBytes, complete } = this.#body;
    if (complete || waitingBytes >= JOINED_BYTES_MAX) this.#send();
    else if (waitingBytes > 0 && !this.#isJoining) {
      this.#isJoining = true;
      setImmediate(() => {
        this.#isJoining = false;
        this.#send();
      });
    }
  };

  #send(): void {
    const body = this.#body;
    while (this.#sink !== null && !this.#awaitsDrain && !this.#awaitsSlot) {
      const part = body.take();
      if (part === null) break;
      const pieces = body.pieces?.pieces ?? 0;
      this.#awaitsSlot = !this.#scheduler.pass(this, part.length, pieces - this.#piecesPassed);
      this.#piecesPassed = pieces;
      this.#owner.hasReachedUpstream = true;
      // Write last, because the part is empty afterwards.
      this.#awaitsDrain = !this.#sink.write(part);
      if (this.#awaitsDrain) this.#owner.onBodyBlocked(true);
    }
    const isBlocked = this.#awaitsDrain || this.#awaitsSlot;
    if (this.#sink === null || isBlocked || !body.complete || body.waitingBytes > 0) return;
    const sink = this.#sink;
    this.stop();
    this.#owner.hasReachedUpstream = true;
    this.#owner.onBodyEnd();
    sink.end();
  }
}
