/**
 * Forgets what nobody will look at any more: events of more than a week ago with their deliveries and attempts, and of
 * each webhook all settled deliveries but the newest. In small steps, so that nobody waits behind one.
 */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

/** A delivery is parked within hours; whoever wants it again has the rest of the week. */
export const RETENTION: Millis = 7 * 24 * 60 * 60 * 1000;
/** Settled deliveries kept of one webhook. */
export const DELIVERIES_KEPT = 1_000;
const STEP = 500;

/** @returns whether there may be more to forget */
export async function forgetOldEvents(db: Kysely<Database>, now: Millis): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('events')
    .where('id', 'in', (from) =>
      from
        .selectFrom('events')
        .select('id')
        .where('createdAt', '<', toTimestamp(now - RETENTION))
        .orderBy('createdAt')
        .limit(STEP),
    )
    .executeTakeFirst();
  return numDeletedRows === BigInt(STEP);
}

/** Events whose last delivery goes are of no more use: they go with it. @returns whether there may be more */
export async function forgetSurplusDeliveries(
  db: Kysely<Database>,
  webhookId: string,
  kept = DELIVERIES_KEPT,
): Promise<boolean> {
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
      .returning('eventId')
      .execute();
    if (surplus.length > 0) {
      await trx
        .deleteFrom('events')
        .where('id', 'in', [...new Set(surplus.map(({ eventId }) => eventId))])
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
        .execute();
    }
    return surplus.length === STEP;
  });
}

/** Every webhook, in the order of the ids. @param after '' for the beginning */
export async function webhooksAfter(db: Kysely<Database>, after: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('webhooks')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(STEP)
    .execute();
  return rows.map(({ id }) => id);
}
