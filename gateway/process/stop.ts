/**
 * The end of a process: the first signal begins a delay, in which load balancers notice that the gateway is not ready;
 * then it drains. A second signal during the delay begins to drain at once, and a signal while it drains ends the
 * process.
 */
import type { Millis } from '#shared/clock.ts';

interface StopLog {
  info(fields: object, message: string): void;
  error(error: Error, message: string): void;
}

export interface StopOptions {
  readonly stop: () => Promise<void>;
  readonly log: StopLog;
  /** How long the gateway goes on as before after the first signal; 0 for not at all. */
  readonly delayMs: Millis;
  /** Called when this time begins. */
  readonly onDelay: () => void;
  readonly exit: (code: number) => void;
}

export class Stop {
  readonly #options: StopOptions;
  #phase: 'running' | 'delayed' | 'draining' = 'running';
  #delay: NodeJS.Timeout | undefined;

  constructor(options: StopOptions) {
    this.#options = options;
  }

  /** @param signal its name, for the log */
  begin(signal: string): void {
    const { log, delayMs, onDelay, exit } = this.#options;
    // A second signal means: do not wait for requests in flight.
    if (this.#phase === 'draining') {
      exit(1);
      return;
    }
    clearTimeout(this.#delay);
    if (this.#phase === 'delayed' || delayMs === 0) {
      this.#drain(signal);
      return;
    }
    this.#phase = 'delayed';
    log.info({ signal, delayMs }, 'reports that it is not ready, and drains after a delay');
    onDelay();
    this.#delay = setTimeout(() => this.#drain(signal), delayMs);
  }

  #drain(signal: string): void {
    const { stop, log, exit } = this.#options;
    this.#phase = 'draining';
    log.info({ signal }, 'draining');
    stop().then(
      () => exit(0),
      (error) => {
        log.error(error, 'the shutdown failed');
        exit(1);
      },
    );
  }
}
