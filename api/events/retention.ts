/**
 * Deletes old events, in small steps so that nothing waits for long: events older than a week with their deliveries and
 * attempts, and for each webhook all settled deliveries except the newest. Pending deliveries stay, however old they
 * are, because they will be delivered or parked, unless their receiver hangs.
 */
import { unlocked } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** A delivery is parked after hours. Then there is a week to ask for it again. */
export const RETENTION: Millis = 7 * 24 * 60 * 60 * 1000;
/** Number of settled deliveries that are stored for each webhook. */
const DELIVERIES_KEPT = 1_000;

/** @returns the number of events that were deleted */
export async function forgetEvents(
  db: Database,
  now: Millis,
  isStopping: () => boolean,
  kept = DELIVERIES_KEPT,
): Promise<number> {
  const before = toTimestamp(now - RETENTION);
  let events = 0;
  await inSlices(async (rowsMax) => {
    const deleted = await deleteSome(db, 'events', unlocked(db, oldEvents(db, before, rowsMax)));
    events += deleted;
    return deleted;
  }, isStopping);
  const webhooks = await db.selectFrom('webhooks').select('id').execute();
  for (const { id } of webhooks) {
    await inSlices(async (rowsMax) => {
      const eventIds = await deleteSurplus(db, id, kept, rowsMax);
      events += await deleteEventsWithoutDelivery(db, eventIds);
      return eventIds.length;
    }, isStopping);
  }
  return events;
}

/** Selects events whose last delivery was settled before this time. */
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

/** Deletes settled deliveries of a webhook, except the newest. @returns the ids of their events */
async function deleteSurplus(
  db: Database,
  webhookId: string,
  kept: number,
  rowsMax: number,
): Promise<readonly string[]> {
  const rows = await db
    .deleteFrom('deliveries')
    .where('id', 'in', (from) =>
      from
        .selectFrom('deliveries')
        .select('id')
        .where('webhookId', '=', webhookId)
        .where('status', '!=', 'pending')
        .orderBy('createdAt', 'desc')
        .orderBy('id', 'desc')
        .limit(rowsMax)
        .offset(kept),
    )
    .returning('eventId')
    .execute();
  return rows.map(({ eventId }) => eventId);
}

/** @returns the number of events that were deleted */
export async function deleteEventsWithoutDelivery(db: Database, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const { numDeletedRows } = await db
    .deleteFrom('events')
    .where('id', 'in', ids)
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('deliveries').select('deliveries.id').whereRef('deliveries.eventId', '=', 'events.id'),
        ),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
