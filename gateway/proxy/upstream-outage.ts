/**
 * Notices when the application does not answer. It logs why, once when an outage begins and once when it is over.
 *
 * - An outage begins at once if no connection can be made, because that concerns every request. Other failures may
 *   concern one request only: there have to be three without a reply between them, unless the application has not
 *   answered anything since the start.
 * - It is over a few seconds after a reply, if nothing has failed since. So the log has few lines about an application
 *   that comes and goes.
 * - Requests are forwarded all the same.
 */
import type { Outage } from '#gateway/store/circuit.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { type UpstreamFault, upstreamReason } from './upstream-reason.ts';

export interface OutageLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

/** A time in which the application did not answer, and why. */
export interface UpstreamOutageReport extends Outage {
  readonly reason: string;
  /** When a request last got no reply. */
  readonly failedAt: Millis;
}

const FAILURES_IN_A_ROW = 3;
const SETTLED_MS: Millis = 3000;
/** Maximum number of reasons that the log gives for one outage. */
const REASONS_MAX = 4;

export class UpstreamOutage {
  readonly #log: OutageLog;
  readonly #clock: Clock;
  #hasAnswered = false;
  /** Requests without a reply, since the last reply or in this outage. */
  #unanswered = 0;
  /** Time of the first reply after the last failure, while the outage is not over; else null. */
  #answeredAt: Millis | null = null;
  /** Codes that this outage has logged. */
  #codes: string[] = [];
  /** null if there was none. Its `to` is null while it lasts. */
  last: UpstreamOutageReport | null = null;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: OutageLog }) {
    this.#log = log;
    this.#clock = clock;
  }

  /** The application has sent the head of a reply. */
  answered(): void {
    this.#hasAnswered = true;
    if (this.#unanswered === 0) return;
    if (this.last?.to === null) this.#answeredAt ??= this.#clock();
    else this.#unanswered = 0;
  }

  /** A request got no reply. */
  failed(fault: UpstreamFault): void {
    const { code, isUnreachable } = fault;
    const failedAt = this.#clock();
    const isLasting = this.last?.to === null;
    this.#unanswered++;
    this.#answeredAt = null;
    if (!isLasting && !isUnreachable && this.#hasAnswered && this.#unanswered < FAILURES_IN_A_ROW) return;
    if (!isLasting) this.#codes = [];
    const from = isLasting ? (this.last?.from ?? failedAt) : failedAt;
    this.last = { from, to: null, reason: this.last?.reason ?? '', failedAt };
    if (this.#codes.includes(code) || this.#codes.length === REASONS_MAX) return;
    const { reason, fix } = upstreamReason(fault);
    const still = isLasting ? 'still ' : '';
    this.#codes.push(code);
    this.last = { ...this.last, reason };
    this.#log.warn({ code }, `the application ${still}does not answer: ${reason}; ${fix}`);
  }

  /** Called about once a second. */
  onTick(): void {
    const to = this.#answeredAt;
    if (this.last === null || to === null || this.#clock() - to < SETTLED_MS) return;
    this.last = { ...this.last, to };
    const outageMs = Math.round(to - this.last.from);
    this.#log.info({ outageMs, unanswered: this.#unanswered }, 'the application answers again');
    this.#answeredAt = null;
    this.#unanswered = 0;
  }
}
