/** Makes a delivery due again, whatever became of it: same body, same id. */
import type { Kysely } from 'kysely';
import type { Database, Timestamp } from '#api/db/schema.ts';

/**
 * It starts a new series of attempts. One that a worker is at right now is left to it; there is nothing to hurry.
 *
 * @returns false when there is no such delivery of this webhook
 */
export async function makeDueAgain(
  db: Kysely<Database>,
  { webhookId, deliveryId, now }: { webhookId: string; deliveryId: string; now: Timestamp },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('deliveries')
    .set({ status: 'pending', failureCount: 0, dueAt: now, updatedAt: now })
    .where('id', '=', deliveryId)
    .where('webhookId', '=', webhookId)
    .where('lease', 'is', null)
    .executeTakeFirst();
  if (numUpdatedRows > 0n) return true;
  const leased = await db
    .selectFrom('deliveries')
    .select('id')
    .where('id', '=', deliveryId)
    .where('webhookId', '=', webhookId)
    .executeTakeFirst();
  return leased !== undefined;
}
