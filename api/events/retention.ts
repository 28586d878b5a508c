/** Deletes old events with their deliveries and attempts, in small steps so that nothing waits for long. */
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** A delivery is parked after hours. Then there is a week to ask for it again. */
export const RETENTION: Millis = 7 * 24 * 60 * 60 * 1000;

/** @returns the number of events that were deleted */
export async function forgetEvents(db: Database, now: Millis, isStopping: () => boolean): Promise<number> {
  const before = toTimestamp(now - RETENTION);
  let events = 0;
  await inSlices(async (rowsMax) => {
    const deleted = await deleteSome(db, 'events', unlocked(db, oldEvents(db, before, rowsMax)));
    events += deleted;
    return deleted;
  }, isStopping);
  return events;
}

/**
 * Selects events whose last delivery was settled before this time. Pending deliveries stay, however old they are, because
 * they will be delivered or parked, unless their receiver hangs.
 */
export function oldEvents(db: Database, before: Timestamp, limit: number) {
  return db
    .selectFrom('events')
    .select('id')
    .where('createdAt', '<', before)
    .where('mailsDueAt', 'is', null)
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('deliveries')
            .innerJoin('webhooks', 'webhooks.id', 'deliveries.webhookId')
            .select('deliveries.id')
            .whereRef('deliveries.eventId', '=', 'events.id')
            .where(({ and, eb, or }) =>
              or([
                and([eb('deliveries.status', '=', 'pending'), eb('webhooks.pausedUntil', 'is', null)]),
                eb('deliveries.updatedAt', '>=', before),
              ]),
            ),
        ),
      ),
    )
    .orderBy('createdAt')
    .limit(limit);
}
