/**
 * How fast one client may begin handshakes. A handshake costs the gateway a signature and the client next to nothing, and
 * whoever closes at once holds no connection that could be counted.
 */
import type { Clock, Millis } from '#shared/clock.ts';

interface HandshakePaceOptions {
  /** Of one client address, in the long run. */
  readonly perSecond: number;
  readonly clock: Clock;
}

/** After a pause a client may begin as many at once as it may in this time. */
const BURST_MS: Millis = 4000;
/** Some 150 bytes each. Forgetting one gives it another burst, for which an attacker needs as many addresses. */
const CLIENTS_MAX = 4096;

export class HandshakePace {
  readonly #intervalMs: Millis;
  readonly #clock: Clock;
  /** When each client's whole burst is there again; who begins a handshake stands last. */
  readonly #wholeAt = new Map<string, Millis>();

  constructor({ perSecond, clock }: HandshakePaceOptions) {
    this.#intervalMs = 1000 / perSecond;
    this.#clock = clock;
  }

  /** How many clients are remembered. */
  get size(): number {
    return this.#wholeAt.size;
  }

  /**
   * @param waitMaxMs as long as the client may be kept waiting
   * @returns how long it has to wait before its handshake, which is counted; null: too long, and it is not counted
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
