/** One call under protection: how long the upstream takes for it, and whether it is a long poll. */
import type { Client } from '#gateway/bounds/clients.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Protection } from './protection.ts';

export class ProtectedCall {
  readonly protection: Protection;
  readonly #client: Client;
  readonly #clock: Clock;
  /** Time when the whole request was sent; 0 before that, and after its time was measured. */
  #sentAt: Millis = 0;
  /** Whether this call is a long poll that has given its place to another request. */
  #isPoll = false;

  constructor(protection: Protection, client: Client, clock: Clock) {
    this.protection = protection;
    this.#client = client;
    this.#clock = clock;
  }

  sent(): void {
    this.#sentAt = this.#clock();
  }

  /** Reports to the protection how long the upstream took. Only the first report after `sent` counts. */
  measure(isAnswered: boolean): void {
    if (this.#sentAt === 0) return;
    const ms = this.#clock() - this.#sentAt;
    this.#sentAt = 0;
    this.protection.measure(this.#client, ms, isAnswered);
  }

  /** Whether it waits for an event and may give its place to another request, because places are meant for work. */
  becomesPoll(afterMs: Millis, hasRoomForStream: boolean): boolean {
    if (this.#sentAt === 0 || this.#clock() - this.#sentAt < afterMs) return false;
    this.measure(false);
    if (!this.protection.hasRoomForPoll || !hasRoomForStream) return false;
    this.protection.polls++;
    this.#isPoll = true;
    return true;
  }

  /** Called when the upstream has finished the request. */
  leave(): void {
    if (this.#isPoll) this.protection.polls--;
    this.#isPoll = false;
  }
}
