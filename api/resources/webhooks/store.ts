/** Webhooks, which are notified of responses. Their deliveries are in events/. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { Database, Decoded, EventType, Tables, WebhookTable } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';
import type { Random } from '#api/values/ids.ts';

type ReceiverState = 'isQuick' | 'hangs' | 'pausedUntil';
export type Webhook = Decoded<
  Omit<WebhookTable, ReceiverState>,
  { triggers: readonly EventType[]; surveyIds: readonly string[] }
>;

const SECRET_BYTES = 32;

/** Returns a key for signatures, in the format of Standard Webhooks. */
export function newWebhookSecret(random: Random): string {
  return `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`;
}

export const webhooks = workspaceTable<Webhook>('webhooks', {
  json: ['triggers', 'surveyIds'],
  // The worker writes what it learns about the receiver.
  hidden: ['isQuick', 'hangs', 'pausedUntil'] satisfies readonly ReceiverState[],
  locks: 'webhooks',
  // Every response notifies each of them.
  limit: { max: 100, noun: 'webhooks' },
});

/** Whether a webhook lists one of these surveys. The column is a JSON list, and ids contain no wildcards. */
export function namesOneOf(surveyIds: readonly string[]): Expression<SqlBool> {
  const { lit, or } = expressionBuilder<Tables, 'webhooks'>();
  return surveyIds.length === 0
    ? lit(false)
    : or(surveyIds.map((id) => expressionBuilder<Tables, 'webhooks'>()('surveyIds', 'like', `%"${id}"%`)));
}

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
