/**
 * Protects the application from more concurrent requests than it can handle: an adaptive limit lowers the bound for
 * requests in progress. Requests beyond it wait in the pool, in the order of their priorities, for a short time. In
 * shadow mode everything is measured, and the bound stays unchanged.
 */

import type { Client } from '#gateway/bounds/clients.ts';
import type { Lane, Priority } from '#gateway/bounds/priority.ts';
import type { Protect } from '#gateway/policy/policy-set.ts';
import { Deadlines } from '#gateway/proxy/deadlines.ts';
import type {
  ProtectedBound,
  ProtectedCall,
  Protection as ProtectionOfUpstream,
} from '#gateway/proxy/protected.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { AdaptiveLimit } from './adaptive-limit.ts';

interface ProtectionOptions extends Omit<ProtectedBound, 'waitingIn'> {
  /** Called when a request is refused because the application replies slowly. */
  readonly onOverload: (limit: number) => void;
}

const IN_SHADOW: Lane = { priority: 'normal', isBehind: false };
const PATIENCE_MS: Readonly<Record<Priority, Millis>> = { high: 2000, normal: 1000, low: 500 };

export class Protection implements ProtectionOfUpstream {
  readonly mode: Protect;
  /** Number of refused requests. In shadow mode it counts those that arrived when the limit was reached. */
  readonly refused: Record<'front' | 'back', Record<Priority, number>> = {
    front: { high: 0, normal: 0, low: 0 },
    back: { high: 0, normal: 0, low: 0 },
  };
  readonly patience: Readonly<Record<Priority, Deadlines>>;
  /** Number of long polls that gave their places to other requests. */
  polls = 0;
  readonly #options: ProtectionOptions;
  readonly #adaptive: AdaptiveLimit;
  isClosed = false;

  constructor(options: ProtectionOptions) {
    const { mode, inUse, clock } = options;
    const patience = (priority: Priority): Deadlines => new Deadlines(PATIENCE_MS[priority], clock);
    this.mode = mode;
    this.patience = { high: patience('high'), normal: patience('normal'), low: patience('low') };
    this.#options = options;
    this.#adaptive = new AdaptiveLimit(inUse.total);
  }

  /** The adaptive limit, also in shadow mode. */
  get limit(): number {
    return this.#adaptive.limit;
  }

  get isLowered(): boolean {
    return this.mode === 'on' && !this.isClosed && this.limit < this.#adaptive.max;
  }

  /**
   * Whether one more long poll may give its place to another request. Otherwise a frozen application would get more
   * requests than without protection.
   */
  get hasRoomForPoll(): boolean {
    return this.isLowered && this.polls < this.#adaptive.max - this.limit;
  }

  begin(client: Client): ProtectedCall {
    return new Call(this, client, this.#options.clock);
  }

  enter(lane: Lane): Lane {
    if (this.mode === 'on') return lane;
    if (this.limit < this.#adaptive.max && this.#options.inUse.held >= this.limit) this.#count(lane);
    return IN_SHADOW;
  }

  /**
   * @param ms from the end of the request to the beginning of its reply, or to its failure
   * @param isAnswered false if there was no reply, or an error
   */
  measure({ network, address }: Client, ms: Millis, isAnswered: boolean): void {
    // Requests that were sent before a reload may still be answered.
    if (this.isClosed) return;
    const { inUse, clock, onRaised } = this.#options;
    const before = this.limit;
    this.#adaptive.measure((network ?? { address }).address, ms, isAnswered, inUse.held, clock());
    if (this.mode === 'shadow' || this.limit === before) return;
    inUse.limitTo(this.limit);
    if (this.limit > before) onRaised();
  }

  refuse(lane: Lane): void {
    this.#count(lane);
    this.#options.onOverload(this.limit);
  }

  #count({ priority, isBehind }: Lane): void {
    this.refused[isBehind ? 'back' : 'front'][priority]++;
  }

  close(): void {
    this.isClosed = true;
    this.#options.inUse.limitTo(this.#adaptive.max);
    this.#options.onRaised();
  }
}

/** One call: how long the upstream takes for it, and whether it is a long poll. */
class Call implements ProtectedCall {
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
