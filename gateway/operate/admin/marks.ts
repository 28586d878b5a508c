/** The newest events of the gateway, which the page marks in its chart: reloads, changes by operators, and outages. */
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
  /** Time at which a process began to decide without the store, in ISO 8601; null if all use the store. */
  readonly storeAwaySince: string | null;
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
    const before = this.#before ?? { ...state, storeAwaySince: null };
    this.#before = state;
    const { policyVersion, policyRefusal, storeAwaySince } = state;
    if (policyVersion !== before.policyVersion) this.add('reload', `policy file version ${policyVersion}`);
    if (policyRefusal !== null && policyRefusal !== before.policyRefusal)
      this.add('reload', 'the edited policy file is refused');
    if (storeAwaySince !== null && before.storeAwaySince === null)
      this.add('outage', 'the store is unavailable', storeAwaySince);
    if (storeAwaySince === null && before.storeAwaySince !== null)
      this.add('recovery', 'the store is available again');
  }
}
