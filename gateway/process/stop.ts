/**
 * The end of a process: the first signal begins a delay, in which load balancers notice that the gateway is not ready;
 * then it drains. A second signal during the delay begins to drain at once, and a signal while it drains ends the
 * process.
 */
import type { Millis } from '#shared/clock.ts';

export interface StopOptions {
  readonly stop: () => Promise<void>;
  readonly log: {
    info(fields: object, message: string): void;
    error(error: Error, message: string): void;
  };
  /** How long the gateway goes on as before after the first signal; 0 for not at all. */
  readonly delayMs: Millis;
  /** Called when this time begins. */
  readonly onDelay: () => void;
  readonly exit: (code: number) => void;
}

/** @returns a function to call with the name of each signal */
export function stopper({ stop, log, delayMs, onDelay, exit }: StopOptions): (signal: string) => void {
  let phase: 'running' | 'delayed' | 'draining' = 'running';
  let delay: NodeJS.Timeout | undefined;
  const drain = (signal: string): void => {
    clearTimeout(delay);
    phase = 'draining';
    log.info({ signal }, 'draining');
    stop().then(
      () => exit(0),
      (error) => {
        log.error(error, 'the shutdown failed');
        exit(1);
      },
    );
  };
  return (signal) => {
    // A second signal means: do not wait for requests in flight.
    if (phase === 'draining') exit(1);
    else if (phase === 'delayed' || delayMs === 0) drain(signal);
    else {
      phase = 'delayed';
      log.info({ signal, delayMs }, 'reports that it is not ready, and drains after a delay');
      onDelay();
      delay = setTimeout(() => drain(signal), delayMs);
    }
  };
}
