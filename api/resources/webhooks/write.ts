/** Creates and changes webhooks, for v1 and v2. */
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, existing, forbidden, notFound } from '#api/errors.ts';
import { assertTarget } from '#api/events/targets.ts';
import { newId } from '#api/ids.ts';
import { reachOf } from '#api/resources/organizations/store.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import {
  countWebhooks,
  findWebhook,
  insertWebhook,
  newWebhookSecret,
  updateWebhook,
  type Webhook,
} from './store.ts';

/** Maximum number of webhooks in a workspace, because every response notifies each of them. */
const WEBHOOKS_MAX = 100;

type WebhookFields = Pick<Webhook, 'name' | 'url' | 'source' | 'triggers' | 'surveyIds'>;

/** Undefined fields are not changed. */
type WebhookChange = { readonly [Name in keyof WebhookFields]?: WebhookFields[Name] | undefined };

/**
 * Checks the surveys of a webhook before it is written, inside the transaction.
 *
 * @throws ApiError
 */
type CheckSurveys = (trx: Database, surveyIds: readonly string[], workspaceId: string) => Promise<void>;

type Parts = Pick<Context, 'db' | 'clock' | 'random' | 'targets'>;

/** Allows any ids, because a webhook may name a survey that does not exist yet. */
export const anySurveys: CheckSurveys = async () => {};

/** @throws ApiError bad_request for a forbidden target, forbidden if the workspace has its maximum */
export async function createWebhook(
  { db, clock, random, targets }: Parts,
  workspace: Workspace,
  fields: WebhookFields,
  checkSurveys: CheckSurveys,
): Promise<Webhook & { readonly secret: string }> {
  // Check the target outside of the transaction, because the check queries a name server.
  await assertTarget(fields.url, targets, await reachOf(db, workspace.id));
  const now = toTimestamp(clock());
  const made = {
    ...onlyFields(fields),
    id: newId(random),
    workspaceId: workspace.id,
    secret: newWebhookSecret(random),
    createdAt: now,
    updatedAt: now,
  };
  await db.transaction().execute(async (trx) => {
    await lockRow(trx, 'workspaces', workspace.id);
    if ((await countWebhooks(trx, workspace.id)) >= WEBHOOKS_MAX) {
      throw forbidden(`A workspace can have ${WEBHOOKS_MAX} webhooks; delete one that is not used`);
    }
    await checkSurveys(trx, made.surveyIds, workspace.id);
    await insertWebhook(trx, made);
  });
  return made;
}

/** @throws ApiError as createWebhook does; not_found if it was deleted meanwhile */
export async function changeWebhook(
  { db, clock, targets }: Parts,
  id: string,
  change: WebhookChange,
  checkSurveys: CheckSurveys,
): Promise<Webhook> {
  if (change.url !== undefined) {
    const stored = existing(await findWebhook(db, id), 'Webhook', id);
    await assertTarget(change.url, targets, await reachOf(db, stored.workspaceId));
  }
  return db.transaction().execute(async (trx) => {
    await lockRow(trx, 'webhooks', id);
    const stored = existing(await findWebhook(trx, id), 'Webhook', id);
    const changed: Webhook = {
      ...stored,
      ...onlyFields({
        name: change.name === undefined ? stored.name : change.name,
        url: change.url ?? stored.url,
        source: change.source ?? stored.source,
        triggers: change.triggers ?? stored.triggers,
        surveyIds: change.surveyIds ?? stored.surveyIds,
      }),
      updatedAt: toTimestamp(clock()),
    };
    const known = new Set(stored.surveyIds);
    // A survey that was deleted since must not prevent another change.
    const added = changed.surveyIds.filter((surveyId) => !known.has(surveyId));
    await checkSurveys(trx, added, stored.workspaceId);
    await updateWebhook(trx, changed);
    return changed;
  });
}

/**
 * Allows surveys that the caller can read, all of the webhook's workspace.
 *
 * @param readable the workspaces that the caller can read; other surveys are reported as missing
 */
export function surveysOf(readable: readonly string[]): CheckSurveys {
  return async (trx, surveyIds, workspaceId) => {
    if (surveyIds.length === 0) return;
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
    if (foreign !== undefined) {
      const problem = `The survey ${foreign} is of another workspace`;
      throw badRequest(problem, { surveyIds: problem });
    }
  };
}

/** Picks the fields that a caller may write, without duplicates. */
function onlyFields({ name, source, surveyIds, triggers, url }: WebhookFields): WebhookFields {
  return { name, source, url, triggers: [...new Set(triggers)], surveyIds: [...new Set(surveyIds)] };
}
