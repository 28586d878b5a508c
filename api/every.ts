/** Runs a job now and then again in equal intervals, until it is stopped. Runs of one job never overlap. */
import type { Millis } from '#shared/clock.ts';

interface PeriodicJob {
  /** Waits for a run that is under way. */
  stop(): Promise<void>;
}

interface JobRun {
  /** A long job asks between its steps. */
  isStopping(): boolean;
}

/** @param onError a run failed; the next one comes in its time */
export function every(
  intervalMs: Millis,
  job: (run: JobRun) => Promise<void>,
  onError: (error: unknown) => void,
): PeriodicJob {
  let underWay: Promise<void> | null = null;
  let isStopping = false;
  const run = (): void => {
    underWay ??= job({ isStopping: () => isStopping })
      .catch(onError)
      .finally(() => {
        underWay = null;
      });
  };
  const timer = setInterval(run, intervalMs);
  timer.unref();
  run();
  return {
    async stop() {
      isStopping = true;
      clearInterval(timer);
      await underWay;
    },
  };
}
