/**
 * Webhooks on v1 and v2. Only v2 checks the surveys, because on v1 a webhook may name one that does not exist yet.
 *
 * Callers: API keys, and on v1 sessions. GET needs the right to read the workspace, POST and PUT, which is on v2, to
 * write, DELETE to manage.
 */
import { type Static, Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { type Shown, v1Resource, v2Resource } from '#api/resources/workspaces/resource.ts';
import {
  checkScope,
  onlyWorkspace,
  reachableWorkspace,
  scopeIn,
  v2Workspace,
} from '#api/resources/workspaces/scope.ts';
import { isId } from '#api/values/ids.ts';
import { NewV2Webhook, NewWebhook, NewWebhookReply, V2WebhookChange, WebhookReply } from './schema.ts';
import { deleteWebhook, namesOneOf, type Webhook, webhooks } from './store.ts';
import { changeWebhook, createWebhook } from './write.ts';

/** Maximum number of surveys in the filter of a list. */
const FILTER_SURVEYS_MAX = 100;

/** A list of ids. The parameter is repeated, or the ids are separated by commas. */
const IdList = Type.Union([Type.String(), Type.Array(Type.String())]);

const described = {
  type: 'Webhook',
  rows: webhooks,
  reply: WebhookReply,
  toReplies: (found: readonly Shown<Webhook>[]) => found,
} as const;

export const webhookRoutes: Routes = async (app, { context }) => {
  const url = '/api/v1/webhooks';
  const resource = v1Resource(app, context, { ...described, url, param: 'webhookId' });

  resource.list();

  app.post(
    url,
    {
      schema: { body: NewWebhook, response: { 200: Type.Object({ data: NewWebhookReply }) } },
      preValidation: checkScope,
    },
    async (request) => {
      const { name, source, surveyIds, triggers, url } = request.body;
      if (!URL.canParse(url)) throw invalidFields({ url: 'Invalid url' });
      const scope = scopeIn(request.body);
      const workspace =
        scope === null
          ? await onlyWorkspace(context, request)
          : await reachableWorkspace(context, request, scope);
      const fields = {
        url,
        triggers,
        name: name ?? null,
        source: source ?? 'user',
        surveyIds: surveyIds ?? [],
      };
      const made = await createWebhook(context, workspace, fields, null);
      return { data: { ...made, environmentId: workspace.id } };
    },
  );

  resource.read();

  resource.remove(({ id }) => deleteWebhook(context.db, id));
};

export const v2WebhookRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const url = '/api/v2/management/webhooks';
  const resource = v2Resource(app, context, { ...described, url, param: 'id' });

  resource.list({ surveyIds: Type.Optional(IdList) }, webhooks, async (query, request) => {
    const surveyIds = surveyIdsIn(query.surveyIds);
    const matching = db.selectFrom('webhooks').where('workspaceId', 'in', readableWorkspaces(request));
    return { matching: surveyIds === null ? matching : matching.where(namesOneOf(surveyIds)) };
  });

  resource.create(
    NewV2Webhook,
    async (body, request) => {
      const scope = scopeIn(body);
      const workspace =
        scope === null ? await onlyWorkspace(context, request) : await v2Workspace(context, request, scope);
      return createWebhook(context, workspace, body, readableWorkspaces(request));
    },
    NewWebhookReply,
  );

  resource.read();

  resource.change(V2WebhookChange, (body, stored, request) =>
    changeWebhook(context, stored, body, readableWorkspaces(request)),
  );

  resource.remove(({ id }) => deleteWebhook(db, id));
};

/** @returns null if the parameter is absent @throws ApiError invalid_fields for wrong ids or too many */
function surveyIdsIn(value: Static<typeof IdList> | undefined): readonly string[] | null {
  if (value === undefined) return null;
  const surveyIds = [value].flat().flatMap((text) => text.split(','));
  if (surveyIds.length > FILTER_SURVEYS_MAX) {
    throw invalidFields({ surveyIds: `must not have more than ${FILTER_SURVEYS_MAX} ids` });
  }
  const wrong = surveyIds.findIndex((id) => !isId(id));
  if (wrong !== -1) {
    throw invalidFields({ surveyIds: `must be ids separated by commas; entry ${wrong + 1} is none` });
  }
  return surveyIds;
}
