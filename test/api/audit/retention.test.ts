/** Old entries of the audit log are deleted in slices. A setting says after how many days. */
import t from 'tap';
import { forgetAuditEvents, oldAuditEvents } from '#api/audit/audit.ts';
import { SLICE_ROWS } from '#api/db/slices.ts';
import { forgetAudit } from '#api/jobs/scheduled-jobs.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { startApi, startOfTime, type TestApi } from '#test/support/api-app.ts';
import { planOf } from '#test/support/query-plan.ts';

const DAY = 86_400_000;

async function addEvents({ context: { db } }: TestApi, count: number, timestamp: string): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    await db
      .insertInto('auditEvents')
      .values({
        ...{ id: `${timestamp}-${i}`, timestamp, action: 'deleted', target: 't', status: 'failure' },
        ...{ actorId: 'a', actorType: 'user', ipAddress: '192.0.2.1', eventId: 'e', changes: '{}' },
      })
      .execute();
  }
}

const left = async ({ context: { db } }: TestApi): Promise<number> =>
  (await db.selectFrom('auditEvents').select('id').execute()).length;

t.test('deletes old entries in slices, and stops when told to', async (t) => {
  const api = await startApi(t);
  const limit = toTimestamp(startOfTime);
  await addEvents(api, 2 * SLICE_ROWS + 5, toTimestamp(startOfTime - 1));
  await addEvents(api, 3, limit);
  let asked = 0;
  const first = await forgetAuditEvents(api.context.db, limit, () => asked++ > 0);
  t.equal(first, SLICE_ROWS);
  t.equal(await forgetAuditEvents(api.context.db, limit), SLICE_ROWS + 5);
  t.equal(await left(api), 3);
  const plan = await planOf(api.context.db, oldAuditEvents(api.context.db, limit, 200));
  t.match(plan, [/SEARCH auditEvents USING (COVERING )?INDEX auditEvents_timestamp/]);
});

for (const [days, kept] of [
  ['90', 1],
  ['30', 0],
  ['0', 2],
] as const) {
  t.test(`AUDIT_RETENTION_DAYS=${days} keeps ${kept} of two entries of 60 and 100 days`, async (t) => {
    const api = await startApi(t, { env: { AUDIT_RETENTION_DAYS: days } });
    for (const age of [60, 100]) await addEvents(api, 1, toTimestamp(startOfTime - age * DAY));
    await forgetAudit(api.context, () => false, { info: () => undefined, warn: () => undefined });
    t.equal(await left(api), kept);
  });
}
