/** Runs a job at once, and again in equal intervals until it is stopped. Runs of one job never overlap. */
import type { Millis } from '#shared/clock.ts';

interface PeriodicJob {
  /** Resolves when a run that is in progress has ended. */
  stop(): Promise<void>;
}

interface JobRun {
  /** Whether the job must end. A long job calls this between its steps. */
  isStopping(): boolean;
}

/** @param onError called when a run fails; the next one follows after the interval */
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
