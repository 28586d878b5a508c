/**
 * Deletes old events, in small steps so that nothing waits for long: events older than a week with their deliveries and
 * attempts, and for each webhook all settled deliveries except the newest. Pending deliveries stay, however old they
 * are, because they will be delivered or parked, unless their receiver hangs.
 */
import { unlocked } from '#api/db/locks.ts';
import type { Database, DeliveryTable, Timestamp } from '#api/db/schema.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** A delivery is parked after hours. Then there is a week to ask for it again. */
export const RETENTION: Millis = 7 * 24 * 60 * 60 * 1000;
/** Number of settled deliveries that are stored for each webhook. */
const DELIVERIES_KEPT = 1_000;
const STEP = 500;

/** The result of a step. */
export interface Forgotten {
  readonly events: number;
  readonly delivered: number;
  readonly parked: number;
  /** Whether there may be more rows to delete. */
  readonly isPartial: boolean;
}

const nothing: Forgotten = { events: 0, delivered: 0, parked: 0, isPartial: false };

/** Events that are older than a week, and whose last delivery was settled more than a week ago. */
export async function forgetOldEvents(db: Database, now: Millis, step = STEP): Promise<Forgotten> {
  const before = toTimestamp(now - RETENTION);
  return db.transaction().execute(async (trx) => {
    const old = await unlocked(trx, oldEvents(trx, before, step)).execute();
    if (old.length === 0) return nothing;
    const ids = old.map(({ id }) => id);
    const deliveries = await trx
      .deleteFrom('deliveries')
      .where('eventId', 'in', ids)
      .returning('status')
      .execute();
    const events = await deleteEventsWithoutDelivery(trx, ids);
    return { events, ...countByStatus(deliveries), isPartial: old.length === step };
  });
}

export function oldEvents(db: Database, before: Timestamp, limit: number) {
  return db
    .selectFrom('events')
    .select('id')
    .where('createdAt', '<', before)
    .where('mailsDueAt', 'is', null)
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('deliveries')
            .select('deliveries.id')
            .whereRef('deliveries.eventId', '=', 'events.id')
            .innerJoin('webhooks', 'webhooks.id', 'deliveries.webhookId')
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

/** Deletes the surplus deliveries of a webhook, and events whose last delivery was deleted. */
export async function forgetSurplusDeliveries(
  db: Database,
  webhookId: string,
  kept = DELIVERIES_KEPT,
): Promise<Forgotten> {
  return db.transaction().execute(async (trx) => {
    const surplus = await trx
      .deleteFrom('deliveries')
      .where('id', 'in', (from) =>
        from
          .selectFrom('deliveries')
          .select('id')
          .where('webhookId', '=', webhookId)
          .where('status', '!=', 'pending')
          .orderBy('createdAt', 'desc')
          .orderBy('id', 'desc')
          .limit(STEP)
          .offset(kept),
      )
      .returning(['eventId', 'status'])
      .execute();
    if (surplus.length === 0) return nothing;
    const events = await deleteEventsWithoutDelivery(trx, [
      ...new Set(surplus.map(({ eventId }) => eventId)),
    ]);
    return { events, ...countByStatus(surplus), isPartial: surplus.length === STEP };
  });
}

export async function deleteEventsWithoutDelivery(db: Database, ids: readonly string[]): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('events')
    .where('id', 'in', ids)
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('deliveries')
            .select('deliveries.id')
            .whereRef('deliveries.eventId', '=', 'events.id'),
        ),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

function countByStatus(rows: readonly Pick<DeliveryTable, 'status'>[]) {
  const delivered = rows.filter(({ status }) => status === 'delivered').length;
  // Those that were still pending had a receiver that hung for a week.
  return { delivered, parked: rows.length - delivered };
}

/** Lists all webhooks by id. @param after '' for the beginning */
export async function webhooksAfter(db: Database, after: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('webhooks')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(STEP)
    .execute();
  return rows.map(({ id }) => id);
}
