/** The newest events of the gateway, which the page marks in its chart: reloads, changes by operators, and outages. */
import type { Outage } from '#shared/circuit.ts';
import { type Clock, isoTime } from '#shared/clock.ts';

export interface Mark {
  readonly at: string;
  readonly kind: 'reload' | 'change' | 'outage' | 'recovery';
  /** Description of the event for people. */
  readonly text: string;
}

/** The state that marks are derived from. */
interface GatewayState {
  readonly policyVersion: string;
  /** Why the current policy file is not in use; null if it is. */
  readonly policyRefusal: string | null;
  /** The last outage of the store that a process noticed. */
  readonly storeOutage: Outage | null;
}

const MARKS_MAX = 100;

export class Marks {
  readonly #clock: Clock;
  #marks: readonly Mark[] = [];
  #before: GatewayState | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Marks, oldest first. Each change makes a new list object. */
  get list(): readonly Mark[] {
    return this.#marks;
  }

  add(kind: Mark['kind'], text: string, at: string = isoTime(this.#clock())): void {
    this.#marks = [...this.#marks, { at, kind, text }].slice(-MARKS_MAX);
  }

  /** Adds a mark for each difference from the last state. */
  see(state: GatewayState): void {
    const { policyVersion, policyRefusal, storeOutage } = state;
    const isAway = storeOutage?.to === null;
    const before = this.#before ?? { ...state, storeOutage: isAway ? null : storeOutage };
    this.#before = state;
    if (policyVersion !== before.policyVersion) this.add('reload', `policy file version ${policyVersion}`);
    if (policyRefusal !== null && policyRefusal !== before.policyRefusal)
      this.add('reload', 'the edited policy file is refused');
    const wasAway = before.storeOutage?.to === null;
    const backAt = storeOutage?.to ?? null;
    // An outage may begin and end between two looks at the state.
    const isMissed = !wasAway && backAt !== null && backAt > (before.storeOutage?.to ?? 0);
    if (storeOutage !== null && ((isAway && !wasAway) || isMissed))
      this.add('outage', 'the store is unavailable', isoTime(storeOutage.from));
    if ((wasAway && !isAway) || isMissed)
      this.add('recovery', 'the store is available again', isoTime(backAt ?? this.#clock()));
  }
}
