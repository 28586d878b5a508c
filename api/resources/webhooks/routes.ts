/** Webhooks on v1. Needs a key; rights go by method. Changing one is a matter of v2. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { badRequest, forbidden, invalidFields, notFound } from '#api/errors.ts';
import { assertTarget } from '#api/events/targets.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { findWorkspace, type Workspace, withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { NewWebhook, NewWebhookReply, WebhookReply } from './schema.ts';
import {
  countWebhooks,
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  newWebhookSecret,
  type Webhook,
} from './store.ts';

/** Of one workspace: every response is told to each of them. */
const WEBHOOKS_MAX = 100;

const LIST_MAX = 5_000;

const Params = Type.Object({ webhookId: Type.String() });
const one = { 200: Type.Object({ data: WebhookReply }) };

export const webhookRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, random, targets } = context;
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
      return { data: (await withEnvironmentIds(db, found)).map(toReply) };
    },
  );

  app.post(
    url,
    { schema: { body: NewWebhook, response: { 200: Type.Object({ data: NewWebhookReply }) } } },
    async (request) => {
      const { body } = request;
      if (!URL.canParse(body.url)) throw invalidFields({ url: 'Invalid url' });
      const workspace = await workspaceFor(request);
      // Last, because it asks a name server.
      await assertTarget(body.url, targets);
      const now = toTimestamp(clock());
      const secret = newWebhookSecret(random);
      const made: Webhook = {
        id: newId(random),
        workspaceId: workspace.id,
        name: body.name ?? null,
        url: body.url,
        source: body.source ?? 'user',
        triggers: [...new Set(body.triggers)],
        surveyIds: [...new Set(body.surveyIds)],
        secret,
        createdAt: now,
        updatedAt: now,
      };
      await db.transaction().execute(async (trx) => {
        if ((await countWebhooks(trx, workspace.id)) >= WEBHOOKS_MAX) {
          throw forbidden(`A workspace can have ${WEBHOOKS_MAX} webhooks; delete one that is not used`);
        }
        await insertWebhook(trx, made);
      });
      return { data: { ...toReply({ ...made, environmentId: workspace.environmentId }), secret } };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: webhooks.load },
    async (request) => ({ data: toReply(webhooks.of(request)) }),
  );

  app.delete(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: webhooks.load },
    async (request) => {
      const stored = webhooks.of(request);
      await deleteWebhook(db, stored.id);
      return { data: toReply(stored) };
    },
  );

  /** Several integrations name no workspace, which is no question for a key that reaches one. */
  async function workspaceFor(request: FastifyRequest): Promise<Workspace> {
    const scope = scopeIn(request.body);
    if (scope !== null) return reachableWorkspace(context, request, scope);
    const [workspaceId, ...others] = principalOf(request).permissions.keys();
    if (workspaceId === undefined || others.length > 0) throw badRequest('workspaceId must be provided');
    requireRight(request, workspaceId);
    const workspace = await findWorkspace(db, workspaceId);
    if (workspace === null) throw notFound('Workspace', workspaceId);
    return workspace;
  }
};

function toReply({ triggers, surveyIds, ...webhook }: Webhook & { readonly environmentId: string }) {
  return { ...webhook, triggers: [...triggers], surveyIds: [...surveyIds] };
}
