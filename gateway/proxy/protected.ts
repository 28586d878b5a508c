/** Protection of the application from overload, as the proxy uses it. The part `protection/` implements it. */
import type { Bound } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Lane, Priority } from '#gateway/bounds/priority.ts';
import type { Protect } from '#gateway/policy/policy-set.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Deadlines } from './deadlines.ts';

export interface ProtectedBound {
  readonly mode: Protect;
  /** The bound of requests in progress, which protection lowers. */
  readonly inUse: Bound;
  readonly clock: Clock;
  /** Called when waiting requests may have room. */
  readonly onRaised: () => void;
  /** Returns how many requests of a lane wait for a place. */
  readonly waitingIn: (lane: Lane) => number;
}

export type OpenProtection = (bound: ProtectedBound) => Protection;

export interface Protection {
  readonly mode: Protect;
  /** The longest wait of a request, by its priority. */
  readonly patience: Readonly<Record<Priority, Deadlines>>;
  /** Whether requests may wait because of the adaptive limit, not only because of the bound itself. */
  readonly isLowered: boolean;
  /** @returns where the request waits */
  enter(lane: Lane): Lane;
  begin(client: Client): ProtectedCall;
  refuse(lane: Lane): void;
  close(): void;
}

/** One call under protection: how long the upstream takes for it, and whether it is a long poll. */
export interface ProtectedCall {
  readonly protection: Protection;
  /** Called when the whole request was sent. */
  sent(): void;
  /** Reports to the protection how long the upstream took. Only the first report after `sent` counts. */
  measure(isAnswered: boolean): void;
  /** Whether it waits for an event and may give its place to another request, because places are meant for work. */
  becomesPoll(afterMs: Millis, hasRoomForStream: boolean): boolean;
  /** Called when the upstream has finished the request. */
  leave(): void;
}
