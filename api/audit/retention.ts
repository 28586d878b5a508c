/** Forgets old entries of the audit log, a few at a time. */
import type { Kysely } from 'kysely';
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { inSlices } from '#api/db/slices.ts';

/** @returns how many there were */
export async function forgetAuditEvents(
  db: Kysely<Database>,
  before: Timestamp,
  isStopping: () => boolean = () => false,
): Promise<number> {
  let forgotten = 0;
  await inSlices(async (rowsMax) => {
    const { numDeletedRows } = await db
      .deleteFrom('auditEvents')
      .where('id', 'in', unlocked(db, oldAuditEvents(db, before, rowsMax)))
      .executeTakeFirst();
    forgotten += Number(numDeletedRows);
    return Number(numDeletedRows);
  }, isStopping);
  return forgotten;
}

export function oldAuditEvents(db: Kysely<Database>, before: Timestamp, rowsMax: number) {
  return db
    .selectFrom('auditEvents')
    .select('id')
    .where('timestamp', '<', before)
    .orderBy('timestamp')
    .limit(rowsMax);
}
