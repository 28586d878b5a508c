/**
 * The scheduled jobs: surveys start and end at their dates, deleted workspaces and old data go. Every process runs them all,
 * because a job only does what is still to be done, and its statements leave rows that another process has locked, or wait
 * for them. So a job that was cut off is finished by the next run of any process.
 */
import type { FastifyBaseLogger } from 'fastify';
import { forgetAuditEvents } from '#api/audit/audit.ts';
import type { Context } from '#api/context.ts';
import { forgetEvents } from '#api/events/retention.ts';
import { forgetOldMails } from '#api/mail/mailer.ts';
import { endUnverifiedAccounts } from '#api/resources/accounts/expiry.ts';
import { deleteMarked } from '#api/resources/organizations/deletion.ts';
import { closeDueSurveys, publishDueSurveys } from '#api/resources/surveys/schedule.ts';
import { sweepFiles, usedBytes } from '#api/storage/files.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { every } from '#api/work/every.ts';
import type { Millis } from '#shared/clock.ts';

const MOVE_SURVEYS_MS: Millis = 10_000;
const DELETE_MARKED_MS: Millis = 10_000;
const FORGET_EVENTS_MS: Millis = 10 * 60 * 1000;
const HOUR_MS: Millis = 60 * 60 * 1000;
const DAY_MS: Millis = 24 * HOUR_MS;
/** Long after the last link of such an account has expired, which is valid for a day. */
const UNVERIFIED_ACCOUNT_DAYS = 30;
/** Deleted files are gone at once for everybody. This only frees the disk. */
const SWEEP_FILES_MS: Millis = 60 * 1000;
/** Part of the quota of all files above which there is a warning every hour. */
const QUOTA_WARNING = 0.9;

interface JobLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

type JobParts = Pick<Context, 'config' | 'db' | 'clock' | 'random' | 'states' | 'storage'>;

interface ScheduledJob {
  readonly name: string;
  readonly periodMs: Millis;
  readonly run: (parts: JobParts, isStopping: () => boolean, log: JobLog) => Promise<void>;
}

const jobs: readonly ScheduledJob[] = [
  { name: 'moveSurveys', periodMs: MOVE_SURVEYS_MS, run: moveSurveys },
  { name: 'deleteMarked', periodMs: DELETE_MARKED_MS, run: deleteMarked },
  { name: 'forgetEvents', periodMs: FORGET_EVENTS_MS, run: forgetOldEvents },
  {
    name: 'forgetMails',
    periodMs: HOUR_MS,
    run: ({ db, clock }, isStopping) => forgetOldMails(db, clock(), isStopping),
  },
  { name: 'forgetAuditEvents', periodMs: HOUR_MS, run: forgetAudit },
  { name: 'endAccounts', periodMs: HOUR_MS, run: endAccounts },
  { name: 'sweepFiles', periodMs: SWEEP_FILES_MS, run: (parts, isStopping) => sweepFiles(parts, isStopping) },
  { name: 'watchQuota', periodMs: HOUR_MS, run: watchQuota },
];

/** Runs each job at once, because dates may have passed while no process was running, and then in its period. */
export function startScheduledJobs(
  parts: JobParts,
  log: FastifyBaseLogger,
): { readonly stop: () => Promise<void> } {
  // Each job has its own timer, so that a long job does not delay others.
  const running = jobs.map(({ name, periodMs, run }) =>
    every(
      periodMs,
      ({ isStopping }) => run(parts, isStopping, log),
      (error) =>
        log.error(
          { err: error, job: name },
          error instanceof StorageUnavailable ? error.message : 'a scheduled job failed; it is tried again',
        ),
    ),
  );
  return {
    async stop() {
      await Promise.all(running.map((job) => job.stop()));
    },
  };
}

/** Starts and ends surveys at their dates, and purges the states of their workspaces. */
export async function moveSurveys({
  db,
  clock,
  states,
}: Pick<JobParts, 'db' | 'clock' | 'states'>): Promise<void> {
  const now = toTimestamp(clock());
  const moved = [...(await closeDueSurveys(db, now)), ...(await publishDueSurveys(db, now))];
  for (const { workspaceId } of moved) states.purge(workspaceId);
}

async function forgetOldEvents(
  { db, clock }: JobParts,
  isStopping: () => boolean,
  log: JobLog,
): Promise<void> {
  const events = await forgetEvents(db, clock(), isStopping);
  if (events > 0) log.info({ job: 'forgetEvents', events }, 'old events were dropped, see docs/events.md');
}

export async function forgetAudit(
  { config, db, clock }: Pick<JobParts, 'config' | 'db' | 'clock'>,
  isStopping: () => boolean,
  log: JobLog,
): Promise<void> {
  const days = config.auditRetentionDays;
  if (days === 0) return;
  const entries = await forgetAuditEvents(db, toTimestamp(clock() - days * DAY_MS), isStopping);
  if (entries > 0)
    log.info({ job: 'forgetAuditEvents', entries }, 'old entries of the audit log were deleted');
}

export async function endAccounts(
  { db, clock }: Pick<JobParts, 'db' | 'clock'>,
  isStopping: () => boolean,
  log: JobLog,
): Promise<void> {
  const times = {
    before: toTimestamp(clock() - UNVERIFIED_ACCOUNT_DAYS * DAY_MS),
    now: toTimestamp(clock()),
  };
  const accounts = await endUnverifiedAccounts(db, times, isStopping);
  if (accounts > 0)
    log.info({ job: 'endAccounts', accounts }, 'accounts that were never verified were deleted');
}

async function watchQuota({ config, db }: JobParts, _: () => boolean, log: JobLog): Promise<void> {
  const bytesMax = config.storageBytesMax;
  if (bytesMax === null) return;
  const bytes = await usedBytes(db);
  if (bytes > bytesMax * QUOTA_WARNING) {
    log.warn({ bytes, bytesMax }, 'uploaded files have nearly used up STORAGE_TOTAL_MIB');
  }
}
