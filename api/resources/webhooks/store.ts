/** Webhooks, which are notified of responses. Their deliveries are in events/. */
import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import { countRows } from '#api/db/count.ts';
import type { Database, Decoded, EventType, Tables, WebhookTable } from '#api/db/schema.ts';
import { inSlices } from '#api/db/slices.ts';
import type { ListPage } from '#api/http/pagination.ts';
import type { Random } from '#api/ids.ts';

export type Webhook = Decoded<WebhookTable, { triggers: readonly EventType[]; surveyIds: readonly string[] }>;

const SECRET_BYTES = 32;

/** Returns a key for signatures, in the format of Standard Webhooks. */
export function newWebhookSecret(random: Random): string {
  return `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`;
}

/** Lists the webhooks of several workspaces, oldest first, ties by id. */
export async function listWebhooks(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly Webhook[]> {
  const rows = await db
    .selectFrom('webhooks')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('createdAt')
    .orderBy('id')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return rows.map(toWebhook);
}

export async function findWebhook(db: Database, id: string): Promise<Webhook | null> {
  const row = await db.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toWebhook(row);
}

/** Finds webhooks by id, in any order. Ids without a row are left out. */
export async function findWebhooks(db: Database, ids: readonly string[]): Promise<readonly Webhook[]> {
  const rows = await db.selectFrom('webhooks').selectAll().where('id', 'in', ids).execute();
  return rows.map(toWebhook);
}

/** Whether a webhook lists one of these surveys. The column is a JSON list, and ids contain no wildcards. */
export function namesOneOf(surveyIds: readonly string[]): Expression<SqlBool> {
  const { lit, or } = expressionBuilder<Tables, 'webhooks'>();
  return surveyIds.length === 0
    ? lit(false)
    : or(surveyIds.map((id) => expressionBuilder<Tables, 'webhooks'>()('surveyIds', 'like', `%"${id}"%`)));
}

export function countWebhooks(db: Database, workspaceId: string): Promise<number> {
  return countRows(db.selectFrom('webhooks').where('workspaceId', '=', workspaceId));
}

export async function insertWebhook(db: Database, webhook: Webhook): Promise<void> {
  await db.insertInto('webhooks').values(toRow(webhook)).execute();
}

/** Writes all fields of a webhook except the secret, the workspace and `createdAt`. */
export async function updateWebhook(db: Database, webhook: Webhook): Promise<void> {
  const { id, name, source, surveyIds, triggers, updatedAt, url } = toRow(webhook);
  await db
    .updateTable('webhooks')
    .set({ name, source, surveyIds, triggers, updatedAt, url })
    .where('id', '=', id)
    .execute();
}

/** Deletes a webhook. Deletes its deliveries first, in slices, because a receiver that was down for a week has many. */
export async function deleteWebhook(db: Database, id: string): Promise<void> {
  await inSlices(async (rowsMax) => {
    const { numDeletedRows } = await db
      .deleteFrom('deliveries')
      .where('id', 'in', (from) =>
        from.selectFrom('deliveries').select('id').where('webhookId', '=', id).limit(rowsMax),
      )
      .executeTakeFirst();
    return Number(numDeletedRows);
  });
  await db.deleteFrom('webhooks').where('id', '=', id).execute();
}

function toRow(webhook: Webhook): WebhookTable {
  return {
    ...webhook,
    triggers: JSON.stringify(webhook.triggers),
    surveyIds: JSON.stringify(webhook.surveyIds),
  };
}

function toWebhook(row: WebhookTable): Webhook {
  return { ...row, triggers: JSON.parse(row.triggers), surveyIds: JSON.parse(row.surveyIds) };
}
