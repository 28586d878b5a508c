/** Webhooks, which are notified of responses. Their deliveries are in events/. */
import type { Database, Decoded, EventType, WebhookTable } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

type ReceiverState = 'isQuick' | 'hangs' | 'pausedUntil';
export type Webhook = Decoded<
  Omit<WebhookTable, ReceiverState>,
  { triggers: readonly EventType[]; surveyIds: readonly string[] }
>;

export const webhooks = workspaceTable<Webhook>('webhooks', {
  json: ['triggers', 'surveyIds'],
  // The worker writes what it learns about the receiver.
  hidden: ['isQuick', 'hangs', 'pausedUntil'] satisfies readonly ReceiverState[],
  // Every response notifies each of them.
  limit: { max: 100, noun: 'webhooks' },
});

/**
 * Deletes a webhook. Deletes its deliveries first, in slices, because a receiver that was down for a week has many.
 *
 * @returns false if it was gone
 */
export async function deleteWebhook(db: Database, id: string): Promise<boolean> {
  const deliveries = db.selectFrom('deliveries').select('id').where('webhookId', '=', id);
  await inSlices((rowsMax) => deleteSome(db, 'deliveries', deliveries.limit(rowsMax)));
  return webhooks.remove(db, id);
}
