/**
 * Webhooks on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { checkScope, onlyWorkspace, reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { NewWebhook, NewWebhookReply, WebhookChange, WebhookReply } from './schema.ts';
import { deleteWebhook, findWebhook, listWebhooks } from './store.ts';
import { anySurveys, changeWebhook, createWebhook } from './write.ts';

const LIST_MAX = 5_000;

export const webhookRoutes: Routes = async (app, { context }) => {
  const url = '/api/v1/webhooks';
  const webhooks = v1Resource(app, context, {
    url,
    param: 'webhookId',
    type: 'Webhook',
    find: findWebhook,
    reply: WebhookReply,
    toReplies: (found) => found,
  });

  webhooks.list(LIST_MAX, listWebhooks);

  app.post(
    url,
    {
      schema: { body: NewWebhook, response: { 200: Type.Object({ data: NewWebhookReply }) } },
      config: { refuses: ['bad_request', 'not_found', 'forbidden'] },
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
      const made = await createWebhook(context, workspace, fields, anySurveys);
      return { data: { ...made, environmentId: workspace.environmentId } };
    },
  );

  webhooks.read();

  webhooks.change({ body: WebhookChange, refuses: ['bad_request'] }, async (body, { id }) => {
    const { surveyIds, ...change } = body;
    if (change.url !== undefined && !URL.canParse(change.url)) throw invalidFields({ url: 'Invalid url' });
    return changeWebhook(
      context,
      id,
      { ...change, surveyIds: surveyIds === null ? [] : surveyIds },
      anySurveys,
    );
  });

  webhooks.remove({}, ({ id }) => deleteWebhook(context.db, id));
};
