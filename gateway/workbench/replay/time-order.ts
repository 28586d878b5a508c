/**
 * Sorts requests by their arrival. Several workers write to one log, and a line is written when its reply ends. So a
 * slow request comes after fast ones that arrived later.
 */

import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';

/** Maximum number of later requests that may come before a line. */
const LINES_BEHIND_MAX = 65_536;
/** Number of requests that are sorted and passed on at once. */
const BATCH = 8192;

/** Receives the requests. The time never decreases. */
type TakeRequest = (request: LoggedRequest, at: Millis) => void;

export class TimeOrder {
  readonly #take: TakeRequest;
  readonly #held: { readonly at: Millis; readonly request: LoggedRequest }[] = [];
  #now: Millis = Number.NEGATIVE_INFINITY;
  /** Requests that came too late after younger ones. They are counted at the time of those. */
  late = 0;

  constructor(take: TakeRequest) {
    this.#take = take;
  }

  add(request: LoggedRequest): void {
    const at = Math.floor(request.at);
    if (at < this.#now) this.late++;
    this.#held.push({ at: Math.max(at, this.#now), request });
    if (this.#held.length >= LINES_BEHIND_MAX + BATCH) this.#handOut(BATCH);
  }

  /** Passes on all remaining requests. */
  end(): void {
    this.#handOut(this.#held.length);
  }

  /** Passes on the oldest requests. Those of the same time keep their order. */
  #handOut(count: number): void {
    this.#held.sort((a, b) => a.at - b.at);
    for (const { at, request } of this.#held.splice(0, count)) {
      this.#now = at;
      this.#take(request, at);
    }
  }
}
