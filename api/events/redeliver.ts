/** Makes a delivery due again, whatever its status, with the same body and id. */
import type { Database, Timestamp } from '#api/db/schema.ts';

/**
 * Starts a new series of attempts. If a worker has leased the delivery, its attempt goes on.
 *
 * @returns false if the webhook has no such delivery
 */
export async function makeDueAgain(
  db: Database,
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
