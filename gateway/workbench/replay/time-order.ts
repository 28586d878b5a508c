/**
 * Sorts requests by their arrival. Several workers write to one log, and a line is written when its reply ends. So a
 * slow request comes after fast ones that arrived later.
 */

import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import type { LineSource, LogLine } from './log-file.ts';

/** Maximum number of later requests that may come before a line. */
const LINES_BEHIND_MAX = 65_536;

/** Receives the requests. The time never decreases. */
type TakeRequest = (request: LoggedRequest, at: Millis) => void;

/** A line that waits. It is parsed at the end of its wait, so that it takes little memory. */
interface HeldLine extends Omit<LogLine, 'at'> {
  readonly file: LineSource;
  readonly at: Millis;
}

export class TimeOrder {
  readonly #take: TakeRequest;
  #held: HeldLine[] = [];
  #now: Millis = Number.NEGATIVE_INFINITY;
  /** Requests that came too late after younger ones. They are counted at the time of those. */
  late = 0;

  constructor(take: TakeRequest) {
    this.#take = take;
  }

  add({ file, at, text, start, end, line, request }: LogLine): void {
    if (Math.floor(at) < this.#now) this.late++;
    this.#held.push({ file, at: Math.max(Math.floor(at), this.#now), text, start, end, line, request });
    if (this.#held.length >= 2 * LINES_BEHIND_MAX) this.#handOut(LINES_BEHIND_MAX);
  }

  /** Passes on all remaining lines. */
  end(): void {
    this.#handOut(this.#held.length);
  }

  /** Passes on the oldest lines. Lines of the same time keep their order. */
  #handOut(count: number): void {
    const held = this.#held.sort((a, b) => a.at - b.at);
    this.#held = held.slice(count);
    for (let i = 0; i < count; i++) {
      const oldest = held[i];
      if (oldest === undefined) return;
      const { file, at, text, start, end, line } = oldest;
      const request = oldest.request ?? file.read(text, start, end, line, at);
      this.#now = at;
      if (request !== null) this.#take(request, at);
    }
  }
}
