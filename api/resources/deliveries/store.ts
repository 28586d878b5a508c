/** Reads deliveries for the API. Code in events/ writes them. */
import type { Database, DeliveryTable } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { type DeliveryReply, shown } from './schema.ts';

/** Lists deliveries, newest first, ties by id. Makes two queries for any number of deliveries. */
export async function listDeliveries(
  db: Database,
  webhookId: string,
  filter: { readonly page: ListPage; readonly status: DeliveryTable['status'] | null },
): Promise<readonly DeliveryReply[]> {
  let query = selectDeliveries(db).where('deliveries.webhookId', '=', webhookId);
  if (filter.status !== null) query = query.where('deliveries.status', '=', filter.status);
  const rows = await query
    .orderBy('deliveries.createdAt', 'desc')
    .orderBy('deliveries.id', 'desc')
    .limit(filter.page.limit)
    .offset(filter.page.skip)
    .execute();
  return withAttempts(db, rows);
}

export async function findDelivery(
  db: Database,
  webhookId: string,
  id: string,
): Promise<DeliveryReply | null> {
  const rows = await selectDeliveries(db)
    .where('deliveries.id', '=', id)
    .where('deliveries.webhookId', '=', webhookId)
    .execute();
  const [delivery] = await withAttempts(db, rows);
  return delivery ?? null;
}

function selectDeliveries(db: Database) {
  return db
    .selectFrom('deliveries')
    .innerJoin('events', 'events.id', 'deliveries.eventId')
    .select([
      'deliveries.id',
      'deliveries.createdAt',
      'deliveries.updatedAt',
      'deliveries.webhookId',
      'deliveries.status',
      'deliveries.attemptCount',
      'deliveries.dueAt as nextAttemptAt',
      'events.type as event',
      'events.surveyId',
      'events.responseId',
    ]);
}

async function withAttempts(
  db: Database,
  rows: readonly Omit<DeliveryReply, 'attempts'>[],
): Promise<readonly DeliveryReply[]> {
  if (rows.length === 0) return [];
  const attempts = Map.groupBy(
    await db
      .selectFrom('deliveryAttempts')
      .selectAll()
      .where(
        'deliveryId',
        'in',
        rows.map(({ id }) => id),
      )
      .orderBy('deliveryId')
      .orderBy('number')
      .execute(),
    ({ deliveryId }) => deliveryId,
  );
  return rows.map((row) => ({
    ...row,
    attempts: (attempts.get(row.id) ?? []).map(({ number, startedAt, durationMs, ...result }) => ({
      number,
      startedAt,
      durationMs,
      ...shown({ ...result, isPrivate: result.isPrivate === 1 }),
    })),
  }));
}
