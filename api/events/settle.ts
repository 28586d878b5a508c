/** What becomes of a delivery after an attempt: delivered, due again later, or parked. One transaction. */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import type { Random } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { retryDelay } from './backoff.ts';
import type { Attempt } from './deliver.ts';
import type { Leased } from './lease.ts';

/** Attempts kept of one delivery, the newest. */
const ATTEMPTS_KEPT = 20;

/** `gone`: deleted meanwhile, or the lease ran out and somebody else is at it. */
export type Settlement = 'delivered' | 'pending' | 'parked' | 'gone';

export async function settleDelivery(
  db: Kysely<Database>,
  { id, lease, attemptCount, failureCount }: Pick<Leased, 'id' | 'lease' | 'attemptCount' | 'failureCount'>,
  attempt: Attempt,
  { attemptsMax, random }: { readonly attemptsMax: number; readonly random: Random },
): Promise<Settlement> {
  const endedAt = attempt.startedAt + attempt.duration;
  const failures = attempt.isDelivered ? failureCount : failureCount + 1;
  const status = attempt.isDelivered ? 'delivered' : failures < attemptsMax ? 'pending' : 'parked';
  const number = attemptCount + 1;

  return db.transaction().execute(async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable('deliveries')
      .set({
        status,
        attemptCount: number,
        failureCount: failures,
        updatedAt: toTimestamp(endedAt),
        dueAt: status === 'pending' ? toTimestamp(endedAt + retryDelay(failures, random)) : null,
        lease: null,
      })
      .where('id', '=', id)
      .where('lease', '=', lease)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return 'gone';
    await trx
      .insertInto('deliveryAttempts')
      .values({
        deliveryId: id,
        number,
        startedAt: toTimestamp(attempt.startedAt),
        durationMs: attempt.duration,
        statusCode: attempt.statusCode,
        reply: attempt.reply,
        error: attempt.error,
      })
      .execute();
    if (number > ATTEMPTS_KEPT) {
      await trx
        .deleteFrom('deliveryAttempts')
        .where('deliveryId', '=', id)
        .where('number', '<=', number - ATTEMPTS_KEPT)
        .execute();
    }
    return status;
  });
}
