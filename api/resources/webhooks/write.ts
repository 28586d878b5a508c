/** Creates and changes webhooks, for v1 and v2. */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, notFound } from '#api/errors.ts';
import { assertTarget } from '#api/events/targets.ts';
import { reachOf } from '#api/resources/organizations/store.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { newWebhookSecret, type Webhook, webhooks } from './store.ts';

type WebhookFields = Pick<Webhook, 'name' | 'url' | 'source' | 'triggers' | 'surveyIds'>;

/** The workspaces that the caller can read; null if a webhook may name surveys that do not exist yet. */
type Readable = readonly string[] | null;

/** Undefined fields are not changed. */
type WebhookChange = { readonly [Name in keyof WebhookFields]?: WebhookFields[Name] | undefined };

/** @throws ApiError bad_request for a forbidden target, forbidden if the workspace has its maximum */
export async function createWebhook(
  context: Context,
  { id: workspaceId }: Workspace,
  fields: WebhookFields,
  readable: Readable,
): Promise<Webhook & { readonly secret: string }> {
  const { db, random, targets } = context;
  // Check the target outside of the transaction, because the check queries a name server.
  await assertTarget(fields.url, targets, await reachOf(db, workspaceId));
  const made = {
    ...onlyFields(fields),
    ...newRow(context, workspaceId),
    secret: newWebhookSecret(random),
  };
  await inWorkspace(db, workspaceId, async (trx) => {
    await webhooks.refuseFull(trx, workspaceId);
    await checkSurveys(trx, made.surveyIds, workspaceId, readable);
    await webhooks.insert(trx, made);
  });
  return made;
}

/** @throws ApiError as createWebhook does; not_found if it was deleted meanwhile */
export async function changeWebhook(
  context: Context,
  loaded: Webhook,
  change: WebhookChange,
  readable: Readable,
): Promise<Webhook> {
  const { db, targets } = context;
  if (change.url !== undefined) {
    await assertTarget(change.url, targets, await reachOf(db, loaded.workspaceId));
  }
  return webhooks.change(context, loaded, 'Webhook', async (stored, trx) => {
    const changed = onlyFields({
      name: change.name === undefined ? stored.name : change.name,
      url: change.url ?? stored.url,
      source: change.source ?? stored.source,
      triggers: change.triggers ?? stored.triggers,
      surveyIds: change.surveyIds ?? stored.surveyIds,
    });
    const known = new Set(stored.surveyIds);
    // A survey that was deleted since must not prevent another change.
    const added = changed.surveyIds.filter((surveyId) => !known.has(surveyId));
    await checkSurveys(trx, added, stored.workspaceId, readable);
    return changed;
  });
}

/** Requires surveys that the caller can read, all of the webhook's workspace. Others are reported as missing. */
async function checkSurveys(
  trx: Database,
  surveyIds: readonly string[],
  workspaceId: string,
  readable: Readable,
): Promise<void> {
  if (surveyIds.length === 0 || readable === null) return;
  const found = await trx
    .selectFrom('surveys')
    .select(['id', 'workspaceId'])
    .where('id', 'in', surveyIds)
    .where('workspaceId', 'in', readable)
    .execute();
  const workspaceOf = new Map(found.map((survey) => [survey.id, survey.workspaceId]));
  const unknown = surveyIds.find((id) => !workspaceOf.has(id));
  if (unknown !== undefined) throw notFound('Survey', unknown);
  const foreign = surveyIds.find((id) => workspaceOf.get(id) !== workspaceId);
  if (foreign === undefined) return;
  const problem = `The survey ${foreign} is of another workspace`;
  throw badRequest(problem, { surveyIds: problem });
}

/** Picks the fields that a caller may write, without duplicates. */
function onlyFields({ name, source, surveyIds, triggers, url }: WebhookFields): WebhookFields {
  return { name, source, url, triggers: [...new Set(triggers)], surveyIds: [...new Set(surveyIds)] };
}
