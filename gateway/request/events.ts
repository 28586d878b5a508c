/**
 * What happens to a request, in the order of the events below. Whoever counts, logs, learns or bans observes it. An
 * observer has a function for each event that it hears, and never changes the request.
 */
import type { Decision } from '#gateway/limiter/decision.ts';
import type { Outcome, Spent } from '#gateway/limiter/limiter.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Refusal } from '#gateway/refusals/refusal.ts';
import type { Millis } from '#shared/clock.ts';
import type { Caller } from './reading/caller.ts';
import type { Located, ReadableRequest } from './reading/read.ts';
import type { ChargedTo, KnownAs } from './reading/reading.ts';

export type Allowed = Extract<Decision, { kind: 'allow' }>;

/** What is known of a request so far. */
export interface RequestFacts extends ReadableRequest, Omit<Located, 'kind'> {
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
  /** Can be read only after the header section was checked. */
  readonly caller: Caller;
  readonly arrivedAt: Millis;
  /** Time that passed before the body was there. It is no part of the time of the decision. */
  readonly bodyMs: Millis;
  /** The entry of the list `allow` that names the client; null if there is none. */
  readonly allowedBy: ListEntry | null;
  readonly charged: ChargedTo | null;
  /** The identities whose proof depends on the reply; null if no policy covers the request. */
  readonly identified: KnownAs | null;
  /** The answer to the charge; null if nothing was charged, or the answer is not there. */
  readonly spent: Spent | null;
  /** How long the store took; null if it has not answered. */
  readonly storeMs: Millis | null;
  /** The decision of an admitted request; null if no policy counts it. */
  readonly allowed: Allowed | null;
  /** When it was admitted; null if it was not. */
  readonly passedAt: Millis | null;
}

/** The beginning of the application's reply. */
export interface Reply {
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** Time since the decision. */
  readonly tookMs: Millis;
}

export interface Observer {
  /** The route is known, and nothing is decided yet. */
  readonly located?: (request: RequestFacts) => void;
  /** The buckets are known, or that there are none. */
  readonly charged?: (request: RequestFacts) => void;
  /** The store has answered, or this process in its place. */
  readonly spent?: (request: RequestFacts, spent: Spent) => void;
  readonly passed?: (request: RequestFacts) => void;
  /** The gateway answers instead of the application. The request may have passed before. */
  readonly refused?: (request: RequestFacts, refusal: Refusal) => void;
  /** The client has left before the decision. */
  readonly left?: (request: RequestFacts) => void;
  /** The reply of the application begins. */
  readonly replied?: (request: RequestFacts, reply: Reply) => void;
  /** The final cost of the request is known. */
  readonly settled?: (request: RequestFacts, outcomes: readonly Outcome[]) => void;
}

export type Events = Required<Observer>;

/** Makes one observer of several, in the order in which they hear. */
export function allOf(observers: readonly Observer[]): Events {
  return {
    located: inOrder(observers.map(({ located }) => located)),
    charged: inOrder(observers.map(({ charged }) => charged)),
    spent: inOrder(observers.map(({ spent }) => spent)),
    passed: inOrder(observers.map(({ passed }) => passed)),
    refused: inOrder(observers.map(({ refused }) => refused)),
    left: inOrder(observers.map(({ left }) => left)),
    replied: inOrder(observers.map(({ replied }) => replied)),
    settled: inOrder(observers.map(({ settled }) => settled)),
  };
}

/** An event; those that tell nothing besides the request have T = void. */
type Hear<T> = (request: RequestFacts, told: T) => void;

function inOrder<T = void>(all: readonly (Hear<T> | undefined)[]): Hear<T> {
  const hearing = all.filter((hear) => hear !== undefined);
  return (request, told) => {
    for (const hear of hearing) hear(request, told);
  };
}
