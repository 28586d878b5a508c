/**
 * Webhooks on v2.
 *
 * Callers: API keys. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { invalidFields } from '#api/errors.ts';
import { ListMeta, listQuery, pageFrom, readV2Page } from '#api/http/v2-pagination.ts';
import { isId } from '#api/ids.ts';
import { v2Resource } from '#api/resources/workspaces/resource.ts';
import { onlyWorkspace, scopeIn, v2Workspace } from '#api/resources/workspaces/scope.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { NewV2Webhook, NewWebhookReply, V2WebhookChange, WebhookReply } from './schema.ts';
import { deleteWebhook, findWebhook, findWebhooks, namesOneOf } from './store.ts';
import { changeWebhook, createWebhook, surveysOf } from './write.ts';

/** Maximum number of surveys in the filter of a list. */
const FILTER_SURVEYS_MAX = 100;

/** A list of ids. The parameter is repeated, or the ids are separated by commas. */
const IdList = Type.Union([Type.String(), Type.Array(Type.String())]);

const url = '/api/v2/management/webhooks';

export const v2WebhookRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const webhooks = v2Resource(app, context, {
    url,
    param: 'id',
    type: 'Webhook',
    find: findWebhook,
    reply: WebhookReply,
    toReplies: (found) => found,
  });

  app.get(
    url,
    {
      schema: {
        querystring: Type.Object({ ...listQuery, surveyIds: Type.Optional(IdList) }),
        response: { 200: Type.Object({ data: Type.Array(WebhookReply), meta: ListMeta }) },
      },
      config: { refuses: ['bad_request'] },
    },
    async (request) => {
      const page = pageFrom(request.query);
      const surveyIds = surveyIdsIn(request.query.surveyIds);
      const workspaceIds = readableWorkspaces(request);
      let matching = db.selectFrom('webhooks').where('workspaceId', 'in', workspaceIds);
      if (surveyIds !== null) matching = matching.where(namesOneOf(surveyIds));
      const { data, meta } = await readV2Page(matching, page, (ids) => findWebhooks(db, ids));
      return { data: await withEnvironmentIds(db, data), meta };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewV2Webhook, response: { 201: Type.Object({ data: NewWebhookReply }) } },
      config: { refuses: ['bad_request', 'not_found', 'forbidden'] },
    },
    async (request, reply) => {
      const scope = scopeIn(request.body);
      const workspace =
        scope === null ? await onlyWorkspace(context, request) : await v2Workspace(context, request, scope);
      const made = await createWebhook(context, workspace, request.body, surveysReadBy(request));
      return reply.code(201).send({ data: { ...made, environmentId: workspace.environmentId } });
    },
  );

  webhooks.read();

  webhooks.change({ body: V2WebhookChange, refuses: ['bad_request'] }, (body, { id }, request) =>
    changeWebhook(context, id, body, surveysReadBy(request)),
  );

  webhooks.remove({}, ({ id }) => deleteWebhook(db, id));
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

function surveysReadBy(request: FastifyRequest) {
  return surveysOf(readableWorkspaces(request));
}
