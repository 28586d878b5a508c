/** Webhooks on v1. Needs a key; rights go by method. v2 has the same ones in v2-routes.ts. */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { checkScope, onlyWorkspace, reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { toWebhookReply } from './reply.ts';
import { NewWebhook, NewWebhookReply, WebhookChange, WebhookReply } from './schema.ts';
import { deleteWebhook, findWebhook, listWebhooks } from './store.ts';
import { anySurveys, changeWebhook, createWebhook } from './write.ts';

const LIST_MAX = 5_000;

const Params = Type.Object({ webhookId: Type.String() });
const one = { 200: Type.Object({ data: WebhookReply }) };

export const webhookRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const url = '/api/v1/webhooks';
  const oneUrl = `${url}/:webhookId`;
  const webhooks = workspaceRow({ db, type: 'Webhook', param: 'webhookId', find: findWebhook });

  app.get(
    url,
    {
      schema: { querystring: ListQuery, response: { 200: Type.Object({ data: Type.Array(WebhookReply) }) } },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listWebhooks(db, workspaceIds, page),
      );
      return { data: (await withEnvironmentIds(db, found)).map(toWebhookReply) };
    },
  );

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
      const shown = toWebhookReply({ ...made, environmentId: workspace.environmentId });
      return { data: { ...shown, secret: made.secret } };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: webhooks.load },
    async (request) => ({ data: toWebhookReply(webhooks.of(request)) }),
  );

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: WebhookChange, response: one },
      config: { refuses: ['bad_request'] },
      onRequest: webhooks.load,
    },
    async (request) => {
      const { id, environmentId } = webhooks.of(request);
      const { surveyIds, ...change } = request.body;
      if (change.url !== undefined && !URL.canParse(change.url)) throw invalidFields({ url: 'Invalid url' });
      const changed = await changeWebhook(
        context,
        id,
        { ...change, surveyIds: surveyIds === null ? [] : surveyIds },
        anySurveys,
      );
      return { data: toWebhookReply({ ...changed, environmentId }) };
    },
  );

  app.delete(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: webhooks.load },
    async (request) => {
      const stored = webhooks.of(request);
      await deleteWebhook(db, stored.id);
      return { data: toWebhookReply(stored) };
    },
  );
};
