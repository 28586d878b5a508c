/** The newest events of the gateway, which the page marks in its chart: reloads, changes by operators, and outages. */
import type { Outage } from '#shared/circuit.ts';
import { type Clock, isoTime } from '#shared/clock.ts';

export interface Mark {
  readonly at: string;
  readonly kind: 'reload' | 'change' | 'outage' | 'recovery';
  /** Description of the event for people. */
  readonly text: string;
  /** The side that has an outage or is back; missing for other kinds. */
  readonly of?: 'store' | 'application';
}

/** The state that marks are derived from. */
interface GatewayState {
  readonly policyVersion: string;
  /** Why the current policy file is not in use; null if it is. */
  readonly policyRefusal: string | null;
  /** The last outage of the store that a process noticed. */
  readonly storeOutage: Outage | null;
  /** The last one of the application, with its reason. */
  readonly upstreamOutage: (Outage & { readonly reason: string }) | null;
}

interface OutageTexts extends Record<'outage' | 'recovery', string> {
  readonly of: NonNullable<Mark['of']>;
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

  /** @param of what has an outage or is back */
  add(kind: Mark['kind'], text: string, at: string = isoTime(this.#clock()), of?: Mark['of']): void {
    const mark = { at, kind, text, ...(of === undefined ? {} : { of }) };
    this.#marks = [...this.#marks, mark].slice(-MARKS_MAX);
  }

  /** Adds a mark for each difference from the last state. */
  see(state: GatewayState): void {
    const { policyVersion, policyRefusal, storeOutage, upstreamOutage } = state;
    const before = this.#before ?? {
      ...state,
      storeOutage: begun(storeOutage),
      upstreamOutage: begun(upstreamOutage),
    };
    this.#before = state;
    if (policyVersion !== before.policyVersion) this.add('reload', `policy file version ${policyVersion}`);
    if (policyRefusal !== null && policyRefusal !== before.policyRefusal)
      this.add('reload', 'the edited policy file is refused');
    this.#seeOutage(before.storeOutage, storeOutage, {
      of: 'store',
      outage: 'the store is unavailable',
      recovery: 'the store is available again',
    });
    this.#seeOutage(before.upstreamOutage, upstreamOutage, {
      of: 'application',
      outage: `the application does not answer: ${upstreamOutage?.reason ?? ''}`,
      recovery: 'the application answers again',
    });
  }

  #seeOutage(before: Outage | null, now: Outage | null, { of, outage, recovery }: OutageTexts): void {
    const wasAway = before?.to === null;
    const isAway = now?.to === null;
    const backAt = now?.to ?? null;
    // An outage may begin and end between two looks at the state.
    const isMissed = !wasAway && backAt !== null && backAt > (before?.to ?? 0);
    if (now !== null && ((isAway && !wasAway) || isMissed)) this.add('outage', outage, isoTime(now.from), of);
    if ((wasAway && !isAway) || isMissed)
      this.add('recovery', recovery, isoTime(backAt ?? this.#clock()), of);
  }
}

/** What is known at the start: an outage that is over needs no mark, and one that lasts gets it now. */
function begun<One extends Outage>(outage: One | null): One | null {
  return outage?.to === null ? null : outage;
}
