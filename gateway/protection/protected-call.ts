/** One call under protection: how long the upstream takes for it, and whether it is a long poll. */
import type { Client } from '#gateway/bounds/clients.ts';
import type { ProtectedCall as ProtectedCallOfUpstream, Protection } from '#gateway/proxy/protected.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** The protection, as its calls see it. */
interface MeasuringProtection extends Protection {
  /** Number of long polls that gave their places to other requests. */
  polls: number;
  readonly hasRoomForPoll: boolean;
  measure(client: Client, ms: Millis, isAnswered: boolean): void;
}

export class ProtectedCall implements ProtectedCallOfUpstream {
  readonly protection: MeasuringProtection;
  readonly #client: Client;
  readonly #clock: Clock;
  /** Time when the whole request was sent; 0 before that, and after its time was measured. */
  #sentAt: Millis = 0;
  /** Whether this call is a long poll that has given its place to another request. */
  #isPoll = false;

  constructor(protection: MeasuringProtection, client: Client, clock: Clock) {
    this.protection = protection;
    this.#client = client;
    this.#clock = clock;
  }

  sent(): void {
    this.#sentAt = this.#clock();
  }

  measure(isAnswered: boolean): void {
    if (this.#sentAt === 0) return;
    const ms = this.#clock() - this.#sentAt;
    this.#sentAt = 0;
    this.protection.measure(this.#client, ms, isAnswered);
  }

  becomesPoll(afterMs: Millis, hasRoomForStream: boolean): boolean {
    if (this.#sentAt === 0 || this.#clock() - this.#sentAt < afterMs) return false;
    this.measure(false);
    if (!this.protection.hasRoomForPoll || !hasRoomForStream) return false;
    this.protection.polls++;
    this.#isPoll = true;
    return true;
  }

  leave(): void {
    if (this.#isPoll) this.protection.polls--;
    this.#isPoll = false;
  }
}
