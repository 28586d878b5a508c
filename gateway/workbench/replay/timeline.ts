/** Allowed and denied requests over time, in a bounded number of equal spans that grow with the log. */
import type { Millis } from '#shared/clock.ts';

const SPANS = 240;
/** Widths of spans: seconds, minutes, hours, days. After the last, each width is twice the previous one. */
const WIDTHS_S = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
];

export interface Span {
  readonly at: Millis;
  readonly allowed: number;
  readonly denied: number;
}

export class Timeline {
  widthMs: Millis = 1000;
  #begin: Millis = Number.NaN;
  #allowed = new Uint32Array(SPANS);
  #denied = new Uint32Array(SPANS);
  #last = 0;

  /** Adds a request. Times must not decrease. */
  add(at: Millis, isDenied: boolean): void {
    if (Number.isNaN(this.#begin)) this.#begin = Math.floor(at / this.widthMs) * this.widthMs;
    let place = Math.floor((at - this.#begin) / this.widthMs);
    while (place >= SPANS) {
      this.#widen();
      place = Math.floor((at - this.#begin) / this.widthMs);
    }
    const counts = isDenied ? this.#denied : this.#allowed;
    counts[place] = (counts[place] ?? 0) + 1;
    this.#last = place;
  }

  get spans(): readonly Span[] {
    if (Number.isNaN(this.#begin)) return [];
    return Array.from({ length: this.#last + 1 }, (_, i) => ({
      at: this.#begin + i * this.widthMs,
      allowed: this.#allowed[i] ?? 0,
      denied: this.#denied[i] ?? 0,
    }));
  }

  /** Uses the next width that is a multiple of the current one, because spans begin at multiples of it. */
  #widen(): void {
    const width = this.widthMs;
    const wider = WIDTHS_S.map((s) => s * 1000).find((ms) => ms > width && ms % width === 0) ?? width * 2;
    const begin = Math.floor(this.#begin / wider) * wider;
    const allowed = new Uint32Array(SPANS);
    const denied = new Uint32Array(SPANS);
    for (let i = 0; i < SPANS; i++) {
      const place = Math.floor((this.#begin + i * width - begin) / wider);
      if (place >= SPANS) continue;
      allowed[place] = (allowed[place] ?? 0) + (this.#allowed[i] ?? 0);
      denied[place] = (denied[place] ?? 0) + (this.#denied[i] ?? 0);
    }
    this.#begin = begin;
    this.widthMs = wider;
    this.#allowed = allowed;
    this.#denied = denied;
  }
}
