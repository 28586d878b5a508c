import t from 'tap';
import { startReport } from '#api/jobs/limits-report.ts';

t.test('logs the numbers when they have changed, and once more at the end', async (t) => {
  // The report's own timer keeps no process alive.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const limits = { allowed: 0, refused: 0, failedOpen: 0 };
  const audit = { written: 0, throttled: 0, skipped: 0 };
  const lines: object[] = [];
  let tellOne = (): void => undefined;
  const next = () =>
    new Promise<void>((resolve) => {
      tellOne = resolve;
    });
  const report = startReport(
    { limits: { stats: () => ({ ...limits }) }, audit: { stats: () => ({ ...audit }) } },
    {
      error: () => undefined,
      info(fields) {
        lines.push(fields);
        tellOne();
      },
    },
    5,
  );
  limits.failedOpen = 3;
  await next();
  audit.skipped = 1;
  await next();
  const zero = { metric: 'application-limits', allowed: 0, refused: 0, auditWritten: 0, auditThrottled: 0 };
  t.strictSame(
    lines.map((line) => ({ ...line })),
    [
      { ...zero, failedOpen: 3, auditSkipped: 0 },
      { ...zero, failedOpen: 3, auditSkipped: 1 },
    ],
  );
  await report.stop();
  t.equal(lines.length, 2, 'no line without new numbers');
});

t.test('logs at the end the events since the last line', async (t) => {
  let allowed = 0;
  const lines: object[] = [];
  const report = startReport(
    {
      limits: { stats: () => ({ allowed, refused: 0, failedOpen: 0 }) },
      audit: { stats: () => ({ written: 0, throttled: 0, skipped: 0 }) },
    },
    { info: (fields) => lines.push(fields), error: () => undefined },
  );
  allowed = 1;
  t.strictSame(lines, []);
  await report.stop();
  t.match(lines, [{ metric: 'application-limits', allowed: 1 }]);
});
