/**
 * Logs the numbers of the limiter and of the audit log, because the service has no listener for metrics. Once a minute
 * and at the end, if they have changed.
 */
import type { AuditLog } from '#api/audit/audit.ts';
import { every } from '#api/every.ts';
import type { Limiter } from '#api/limits/limiter.ts';
import type { Millis } from '#shared/clock.ts';

const INTERVAL_MS: Millis = 60_000;

interface Report {
  /** Logs the last numbers. */
  stop(): Promise<void>;
}

interface ReportParts {
  readonly limits: Pick<Limiter, 'stats'>;
  readonly audit: Pick<AuditLog, 'stats'>;
}

export function startReport(
  { limits, audit }: ReportParts,
  log: {
    info(fields: object, message: string): void;
    error(fields: object, message: string): void;
  },
  intervalMs = INTERVAL_MS,
): Report {
  const read = (): object => {
    const { written, throttled, skipped } = audit.stats();
    return { ...limits.stats(), auditWritten: written, auditThrottled: throttled, auditSkipped: skipped };
  };
  // Zeros at the start are not logged.
  let told = JSON.stringify(read());
  const tell = (): void => {
    const numbers = read();
    const text = JSON.stringify(numbers);
    if (text === told) return;
    told = text;
    log.info(
      { metric: 'application-limits', ...numbers },
      'application limits and audit entries since the start',
    );
  };
  const job = every(
    intervalMs,
    async () => tell(),
    (error) => log.error({ err: error }, 'the numbers of the limits could not be read'),
  );
  return {
    async stop() {
      await job.stop();
      tell();
    },
  };
}
