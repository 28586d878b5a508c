/**
 * Webhooks on v1 and v2. A webhook may name surveys that do not exist: it is notified only of those of its workspace.
 *
 * Callers: API keys, and on v1 sessions. GET needs the right to read the workspace, POST and PUT, which is on v2, to
 * write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Context, Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { reachOf } from '#api/resources/organizations/store.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { Id, Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';
import { deleteWebhook, webhooks } from './store.ts';

const SECRET_BYTES = 32;
const SURVEYS_MAX = 500;

const url = Type.String({ minLength: 1 });
const triggers = Type.Array(OneOf(['responseCreated', 'responseUpdated', 'responseFinished']), {
  minItems: 1,
  maxItems: 100,
});
const name = Nullable(Type.String({ maxLength: 255 }));
const source = OneOf(['user', 'zapier', 'make', 'n8n', 'activepieces']);
const surveyIds = Type.Array(Id, { maxItems: SURVEYS_MAX });

export const NewWebhook = Type.Object({
  ...scopeFields,
  url,
  triggers,
  name: Type.Optional(name),
  source: Type.Optional(source),
  surveyIds: Type.Optional(Nullable(surveyIds)),
});
/** Absent fields are not changed. The workspace cannot change. */
export const V2WebhookChange = Type.Partial(Type.Object({ name, url, source, triggers, surveyIds }));

const shown = {
  ...rowFields,
  name: Nullable(Type.String()),
  url: Type.String(),
  source: Type.String(),
  surveyIds: Type.Array(Type.String()),
  triggers: Type.Array(Type.String()),
};
export const WebhookReply = Type.Object(shown);
/** The only reply that shows the secret. */
export const NewWebhookReply = Type.Object({ ...shown, secret: Type.String() });

export const webhookRoutes: Routes = async (app, { context }) => {
  const resource = webhookResource(app, context, 'v1');
  resource.list();
};

export const v2WebhookRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = webhookResource(app, context, 'v2');

  resource.listPages({}, webhooks, async (_, request) =>
    db.selectFrom('webhooks').where('workspaceId', 'in', readableWorkspaces(request)),
  );

  resource.change(V2WebhookChange, async (body, loaded) => {
    if (body.url !== undefined) await checkTarget(context, loaded.workspaceId, body.url);
    return webhooks.change(context, loaded, 'Webhook', (stored) => ({
      name: body.name === undefined ? stored.name : body.name,
      url: body.url ?? stored.url,
      source: body.source ?? stored.source,
      triggers: [...new Set(body.triggers ?? stored.triggers)],
      surveyIds: [...new Set(body.surveyIds ?? stored.surveyIds)],
    }));
  });
};

/** Adds the routes that v1 and v2 have in common. */
function webhookResource(app: Parameters<Routes>[0], context: Context, version: 'v1' | 'v2') {
  const { db, random } = context;
  const resource = workspaceResource(app, context, {
    version,
    url: version === 'v1' ? '/api/v1/webhooks' : '/api/v2/management/webhooks',
    param: version === 'v1' ? 'webhookId' : 'id',
    type: 'Webhook',
    rows: webhooks,
    isWorkspaceOptional: true,
    reply: WebhookReply,
    toReplies: (found) => found,
  });

  resource.create(
    NewWebhook,
    async (body, { id }) => {
      await checkTarget(context, id, body.url);
      return webhooks.create(db, {
        ...newRow(context, id),
        url: body.url,
        name: body.name ?? null,
        source: body.source ?? 'user',
        triggers: [...new Set(body.triggers)],
        surveyIds: [...new Set(body.surveyIds)],
        // A key for signatures, in the format of Standard Webhooks.
        secret: `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`,
      });
    },
    NewWebhookReply,
  );

  resource.read();

  resource.remove(({ id }) => deleteWebhook(db, id));
  return resource;
}

/** Queries a name server, so it is called outside of a transaction. @throws ApiError if the target is forbidden */
async function checkTarget({ db, targets }: Context, workspaceId: string, url: string): Promise<void> {
  if (!URL.canParse(url)) throw invalidFields({ url: 'Invalid url' });
  await targets.check(url, await reachOf(db, workspaceId));
}
