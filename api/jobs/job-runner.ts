/**
 * Runs jobs in their periods, each in one process at a time and once in its period, however many processes there are. A
 * process that ends in the middle of a job leaves it to the others.
 */
import { every } from '#api/every.ts';
import type { Millis } from '#shared/clock.ts';
import {
  type JobLease,
  type JobName,
  LEASE_MS,
  type LeaseParts,
  registerJobs,
  takeJob,
} from './job-lease.ts';

/** How late a job may begin. */
const LOOK_MS: Millis = 5_000;

interface Job extends JobName {
  /** @param isStopping a long job asks between its steps, and then ends; what is left is done by the next run */
  readonly run: (isStopping: () => boolean) => Promise<void>;
}

export interface JobRunner {
  /** Waits for what is under way. */
  stop(): Promise<void>;
}

interface JobRunnerOptions extends LeaseParts {
  readonly jobs: readonly Job[];
  /** A run failed; the next one comes in its time. */
  readonly onError: (job: string, error: unknown) => void;
  readonly lookMs?: Millis;
  readonly renewMs?: Millis;
}

export function startJobRunner({
  jobs,
  onError,
  lookMs = LOOK_MS,
  renewMs = LEASE_MS / 3,
  ...parts
}: JobRunnerOptions): JobRunner {
  let isRegistered = false;

  const runLeased = async (job: Job, lease: JobLease, isEnding: () => boolean): Promise<void> => {
    let isLost = false;
    let wasCut = false;
    let renewal = Promise.resolve();
    const timer = setInterval(() => {
      renewal = lease.renew().then(
        (isOurs) => {
          isLost = !isOurs;
        },
        // The next renewal may succeed; if none does, the lease runs out.
        (error: unknown) => onError(job.name, error),
      );
    }, renewMs);
    const isStopping = (): boolean => {
      wasCut ||= isLost || isEnding();
      return wasCut;
    };
    try {
      await job.run(isStopping);
    } finally {
      clearInterval(timer);
      await renewal;
      await lease.end(!wasCut);
    }
  };
  // Of each job its own, so that a long one does not keep the others waiting.
  const lookers = jobs.map((job) =>
    every(
      lookMs,
      async ({ isStopping }) => {
        if (!isRegistered) await registerJobs(parts, jobs);
        isRegistered = true;
        const lease = await takeJob(parts, job);
        if (lease !== null) await runLeased(job, lease, isStopping);
      },
      (error) => onError(job.name, error),
    ),
  );
  return {
    async stop() {
      await Promise.all(lookers.map((looker) => looker.stop()));
    },
  };
}
