/**
 * Bounds how fast one client begins handshakes. A handshake costs the gateway a signature and the client almost
 * nothing. A bound on connections is not enough if the client closes them at once.
 */
import type { Clock, Millis } from '#shared/clock.ts';

interface HandshakePaceOptions {
  /** Average for one client address. */
  readonly perSecond: number;
  readonly clock: Clock;
}

/** After a pause, a client may begin the handshakes of this period at once. */
const BURST_MS: Millis = 4000;
/**
 * Maximum number of clients, of about 150 bytes each. A forgotten client gets another burst, which helps only attackers
 * with more addresses.
 */
const CLIENTS_MAX = 4096;

export class HandshakePace {
  readonly #intervalMs: Millis;
  readonly #clock: Clock;
  /**
   * For each client the time at which its whole burst is available again. The client with the newest handshake is last.
   */
  readonly #wholeAt = new Map<string, Millis>();

  constructor({ perSecond, clock }: HandshakePaceOptions) {
    this.#intervalMs = 1000 / perSecond;
    this.#clock = clock;
  }

  get size(): number {
    return this.#wholeAt.size;
  }

  /**
   * @param waitMaxMs the longest time that the client may wait
   * @returns how long the client must wait before its handshake; null if that is too long, and the handshake is not
   * counted
   */
  begin(client: string, waitMaxMs: Millis): Millis | null {
    const now = this.#clock();
    const wholeAt = Math.max(now, this.#wholeAt.get(client) ?? now) + this.#intervalMs;
    const waitMs = Math.max(0, wholeAt - now - BURST_MS);
    if (waitMs > waitMaxMs) return null;
    this.#wholeAt.delete(client);
    this.#wholeAt.set(client, wholeAt);
    if (this.#wholeAt.size > CLIENTS_MAX) this.#forgetOldest();
    return waitMs;
  }

  #forgetOldest(): void {
    for (const client of this.#wholeAt.keys()) {
      this.#wholeAt.delete(client);
      return;
    }
  }
}
