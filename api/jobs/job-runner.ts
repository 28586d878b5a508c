/** Runs each job once in its period, in one process at a time. If a process dies during a job, another one takes over. */
import { every } from '#api/work/every.ts';
import type { Millis } from '#shared/clock.ts';
import {
  type JobLease,
  type JobName,
  LEASE_MS,
  type LeaseParts,
  registerJobs,
  takeJob,
} from './job-lease.ts';

/** How late a job may start. */
const LOOK_MS: Millis = 5_000;

interface Job extends JobName {
  /** @param isStopping a long job calls it between its steps. If true, it ends, and the next run does the rest */
  readonly run: (isStopping: () => boolean) => Promise<void>;
}

export interface JobRunner {
  stop(): Promise<void>;
}

interface JobRunnerOptions extends LeaseParts {
  readonly jobs: readonly Job[];
  /** Called when a run failed. The next run comes as usual. */
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
    let renewal: Promise<void> | null = null;
    const timer = setInterval(() => {
      // One at a time. With two under way, the older one could come last and shorten the lease.
      renewal ??= lease
        .renew()
        .then(
          (isOurs) => {
            isLost = !isOurs;
          },
          // The next renewal may succeed. If none does, the lease expires.
          (error: unknown) => onError(job.name, error),
        )
        .finally(() => {
          renewal = null;
        });
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
  // Each job has its own timer, so that a long job does not delay others.
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
