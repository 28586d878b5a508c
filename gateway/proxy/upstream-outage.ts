/**
 * Notices when the application does not answer. It logs why, once when an outage begins and once when it is over.
 *
 * - An outage begins at once if no connection can be made, because that concerns every request. Other failures may
 *   concern one request only: there have to be three without a reply between them, unless the application has not
 *   answered anything since the start.
 * - It is over a moment after a reply, if nothing has failed since. For an application that comes and goes, this moment
 *   grows up to five seconds, as the interval of the store's probes does. So the log has few lines about it.
 * - Requests are forwarded all the same.
 */
import { Circuit, type Outage } from '#shared/circuit.ts';
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

/** Maximum number of reasons that the log gives for one outage. */
const REASONS_MAX = 4;

export class UpstreamOutage {
  readonly #log: OutageLog;
  readonly #clock: Clock;
  readonly #circuit: Circuit;
  #hasAnswered = false;
  /** Requests without a reply, since the last reply or in this outage. */
  #unanswered = 0;
  /** Time of the first reply after the last failure, while the outage is not over; else null. */
  #answeredAt: Millis | null = null;
  /** Codes that this outage has logged. */
  #codes: string[] = [];
  #reason = '';
  #failedAt: Millis = 0;

  constructor({ clock, log }: { readonly clock: Clock; readonly log: OutageLog }) {
    this.#log = log;
    this.#clock = clock;
    this.#circuit = new Circuit(clock);
  }

  /** null if there was none */
  get last(): UpstreamOutageReport | null {
    const { lastOutage } = this.#circuit;
    return lastOutage === null ? null : { ...lastOutage, reason: this.#reason, failedAt: this.#failedAt };
  }

  /** The application has sent the head of a reply. */
  answered(): void {
    this.#hasAnswered = true;
    if (this.#unanswered === 0) return;
    if (this.#circuit.isOpen) this.#answeredAt ??= this.#clock();
    else {
      this.#unanswered = 0;
      this.#circuit.succeeded();
    }
  }

  /** A request got no reply. */
  failed(fault: UpstreamFault): void {
    this.#unanswered++;
    this.#answeredAt = null;
    this.#failedAt = this.#clock();
    const { code, isUnreachable } = fault;
    if (!this.#circuit.isOpen) {
      if (!this.#circuit.failed(isUnreachable || !this.#hasAnswered)) return;
      this.#circuit.open();
      this.#codes = [];
    }
    if (this.#codes.includes(code) || this.#codes.length === REASONS_MAX) return;
    const { reason, fix } = upstreamReason(fault);
    const still = this.#codes.length === 0 ? '' : 'still ';
    this.#codes.push(code);
    this.#reason = reason;
    this.#log.warn({ code }, `the application ${still}does not answer: ${reason}; ${fix}`);
  }

  /** Called about once a second. */
  onTick(): void {
    const at = this.#answeredAt;
    if (at === null || this.#clock() - at < this.#circuit.probeMs) return;
    const outageMs = Math.round(this.#circuit.close(at));
    this.#log.info({ outageMs, unanswered: this.#unanswered }, 'the application answers again');
    this.#answeredAt = null;
    this.#unanswered = 0;
  }
}
