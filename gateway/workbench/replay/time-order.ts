/**
 * Puts lines that are slightly out of order into the order in which their requests arrived. Several workers write to one
 * log, and a line is written when its reply ends, so a slow request stands behind fast ones that came later.
 *
 * A wheel with one slot for each millisecond: what came at the same time stays in the order of the lines. A line waits
 * until one has been seen that is SPAN_MS younger, or until HELD_MAX wait. One that comes later than that is handed out
 * at once, and counts as one of now.
 */

import type { LoggedRequest } from '#gateway/workbench/replay/formats/logged-request.ts';
import type { Millis } from '#shared/clock.ts';
import type { LineSource, LogLine } from './log-file.ts';

/** A power of two. */
const SPAN_MS = 65_536;
const HELD_MAX = 65_536;
const MASK = SPAN_MS - 1;
const NONE = -1;

/** Gets the requests, at a time that never goes back. */
export type TakeRequest = (request: LoggedRequest, at: Millis) => void;

export class TimeOrder {
  readonly #take: TakeRequest;
  /** Of each slot, the first and the last line. */
  readonly #first = new Int32Array(SPAN_MS).fill(NONE);
  readonly #last = new Int32Array(SPAN_MS).fill(NONE);
  /** One bit for each slot that has one. */
  readonly #taken = new Uint32Array(SPAN_MS / 32);
  readonly #lines = new HeldLines();
  /** All before it has been handed out. */
  #now: Millis = Number.NEGATIVE_INFINITY;
  /** Requests that came too late for their time. */
  late = 0;

  constructor(take: TakeRequest) {
    this.#take = take;
  }

  add(line: LogLine): void {
    const lines = this.#lines;
    const at = Math.floor(line.at);
    if (lines.size === 0) this.#now = Math.max(this.#now, at - SPAN_MS + 1);
    else if (at - this.#now >= SPAN_MS) this.#advance(at - SPAN_MS + 1);
    if (lines.size === HELD_MAX) this.#advance(this.#nextTaken() + 1);
    if (at < this.#now) {
      this.late++;
      this.#give(line.request ?? line.file.read(line.text, line.start, line.end, line.line, at), this.#now);
      return;
    }
    const place = lines.put(line);
    const slot = at & MASK;
    const last = this.#last[slot] ?? NONE;
    if (last === NONE) {
      this.#first[slot] = place;
      this.#taken[slot >> 5] = (this.#taken[slot >> 5] ?? 0) | (1 << (slot & 31));
    } else lines.next[last] = place;
    this.#last[slot] = place;
  }

  /** Hands out all that is left. */
  end(): void {
    this.#advance(Number.POSITIVE_INFINITY);
  }

  /** Hands out all before this time. */
  #advance(until: Millis): void {
    while (this.#lines.size > 0) {
      const at = this.#nextTaken();
      if (at >= until) break;
      this.#handOut(at);
    }
    if (until !== Number.POSITIVE_INFINITY) this.#now = Math.max(this.#now, until);
  }

  #handOut(at: Millis): void {
    const slot = at & MASK;
    this.#now = at;
    for (let place = this.#first[slot] ?? NONE; place !== NONE; ) {
      const next = this.#lines.next[place] ?? NONE;
      this.#give(this.#lines.takeOut(place, at), at);
      place = next;
    }
    this.#first[slot] = NONE;
    this.#last[slot] = NONE;
    this.#taken[slot >> 5] = (this.#taken[slot >> 5] ?? 0) & ~(1 << (slot & 31));
  }

  #give(request: LoggedRequest | null, at: Millis): void {
    if (request !== null) this.#take(request, at);
  }

  /** The time of the oldest one that waits; there is one. */
  #nextTaken(): Millis {
    let at = this.#now;
    for (;;) {
      const slot = at & MASK;
      const rest = (this.#taken[slot >> 5] ?? 0) >>> (slot & 31);
      if (rest !== 0) return at + (31 - Math.clz32(rest & -rest));
      at += 32 - (slot & 31);
    }
  }
}

/** Lines that wait, in flat arrays: an object for each would outlive the young generation, and cost a third of the run. */
class HeldLines {
  readonly #files: (LineSource | null)[] = new Array(HELD_MAX).fill(null);
  readonly #texts: string[] = new Array(HELD_MAX).fill('');
  readonly #starts = new Int32Array(HELD_MAX);
  readonly #ends = new Int32Array(HELD_MAX);
  readonly #numbers = new Float64Array(HELD_MAX);
  readonly #requests: (LoggedRequest | null)[] = new Array(HELD_MAX).fill(null);
  /** Of each line, the one behind it; of a free place, the next free one. */
  readonly next = Int32Array.from({ length: HELD_MAX }, (_, i) => i + 1);
  #free = 0;
  size = 0;

  /** @returns its place */
  put({ file, text, start, end, line, request }: LogLine): number {
    const place = this.#free;
    this.#free = this.next[place] ?? 0;
    this.next[place] = NONE;
    this.#files[place] = file;
    this.#texts[place] = text;
    this.#starts[place] = start;
    this.#ends[place] = end;
    this.#numbers[place] = line;
    this.#requests[place] = request;
    this.size++;
    return place;
  }

  takeOut(place: number, at: Millis): LoggedRequest | null {
    const request =
      this.#requests[place] ??
      this.#files[place]?.read(
        this.#texts[place] ?? '',
        this.#starts[place] ?? 0,
        this.#ends[place] ?? 0,
        this.#numbers[place] ?? 0,
        at,
      ) ??
      null;
    this.#texts[place] = '';
    this.#requests[place] = null;
    this.next[place] = this.#free;
    this.#free = place;
    this.size--;
    return request;
  }
}
