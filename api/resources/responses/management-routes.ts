/**
 * Responses on v1 and v2. The versions differ in the shape of replies, and in what a change does with maps.
 *
 * Callers: API keys, and on v1 sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to
 * manage.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { readableWorkspaces, requireRight } from '#api/auth/plugin.ts';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { ListQuery, readLargePage } from '#api/http/pagination.ts';
import { timestampIn } from '#api/http/validation.ts';
import { findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { checkScope, reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { withAbsoluteFiles } from '#api/values/absolute-files.ts';
import { Id } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { changeIn } from './answers.ts';
import { toResponseReply } from './reply.ts';
import {
  NewManagementResponse,
  ResponseChange,
  type ResponseMeta,
  ResponseReply,
  ResponseReplyWithNotes,
  V2ResponseChange,
  V2ResponseReply,
} from './schema.ts';
import { listResponses, matchingResponses, type Response, responses, withRelations } from './store.ts';
import { changeResponse, createResponse, removeResponse } from './write.ts';

const LIMIT_DEFAULT = 25;
/** The default and the maximum for the list of all surveys. */
const LIMIT_MAX = 1_000;
const Query = Type.Object({ ...ListQuery.properties, surveyId: Type.Optional(Type.String()) });

export const managementResponseRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const toReplies = async (found: readonly Response[]) =>
    (await withRelations(db, found)).map((one) => toResponseReply(one, config.publicUrl));
  const withNotes = async (found: readonly Response[]) =>
    (await toReplies(found)).map((one) => ({ ...one, notes: [] }));

  for (const url of ['/api/v1/management/responses', '/api/v1/responses']) {
    const row = { version: 'v1', url, param: 'responseId', type: 'Response', rows: responses } as const;
    const noted = workspaceResource(app, context, {
      ...row,
      reply: ResponseReplyWithNotes,
      toReplies: withNotes,
    });
    const plain = workspaceResource(app, context, { ...row, reply: ResponseReply, toReplies });

    app.get(
      url,
      {
        schema: {
          querystring: Query,
          response: { 200: Type.Object({ data: Type.Array(ResponseReplyWithNotes) }) },
        },
      },
      async (request, reply) => {
        const { surveyId } = request.query;
        const workspaceIds = readableWorkspaces(request);
        if (surveyId !== undefined) await reachSurvey(context, request, surveyId);
        const options = {
          limitMax: LIMIT_MAX,
          limitDefault: surveyId === undefined ? LIMIT_MAX : LIMIT_DEFAULT,
        };
        const found = await readLargePage(
          { request, reply },
          request.query,
          options,
          (page) => listResponses(db, workspaceIds, { surveyId }, page),
          async (ids) => withNotes(await responses.findAll(db, ids)),
        );
        return { data: found };
      },
    );

    app.post(
      url,
      { schema: { body: NewManagementResponse, response: { 200: noted.one } }, preValidation: checkScope },
      async (request) => noted.written(await create(context, request, request.body)),
    );
    noted.read();
    plain.change(ResponseChange, (body, stored) =>
      changeResponse(context, stored, (survey) => changeIn(body, survey, config.publicUrl)),
    );
    plain.remove(({ id }) => removeResponse(context, id));
  }
};

const v2Url = '/api/v2/management/responses';

export const v2ResponseRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const resource = workspaceResource(app, context, {
    version: 'v2',
    url: v2Url,
    param: 'id',
    type: 'Response',
    rows: responses,
    reply: V2ResponseReply,
    toReplies: (found) =>
      found.map((one) => ({ ...one, data: withAbsoluteFiles(one.data, config.publicUrl) })),
  });

  resource.listPages(
    { surveyId: Type.Optional(Id), contactId: Type.Optional(Id) },
    responses,
    (query, request) => matchingResponses(db, readableWorkspaces(request), query),
  );
  app.post(
    v2Url,
    { schema: { body: NewManagementResponse, response: { 201: resource.one } } },
    async (request, reply) =>
      reply.code(201).send(await resource.written(await create(context, request, request.body))),
  );
  resource.read();
  resource.change(V2ResponseChange, (body, stored) =>
    changeResponse(context, stored, (survey) => ({
      ...changeIn(body, survey, config.publicUrl),
      meta: body.meta === undefined ? undefined : withoutNull(body.meta),
      replaces: true,
    })),
  );
  resource.remove(({ id }) => removeResponse(context, id));
};

/** @returns the workspace of the survey @throws ApiError not_found, or unauthorized without the right of the method */
async function reachSurvey({ db }: Context, request: FastifyRequest, surveyId: string): Promise<string> {
  const { workspaceId } = existing(await findAnsweredSurvey(db, surveyId), 'Survey', surveyId);
  requireRight(request, workspaceId);
  return workspaceId;
}

async function create(
  context: Context,
  request: FastifyRequest,
  body: NewManagementResponse,
): Promise<Response> {
  const { surveyId, userId } = body;
  const workspaceId = await reachSurvey(context, request, surveyId);
  const scope = scopeIn(body);
  if (scope !== null && (await reachableWorkspace(context, request, scope)).id !== workspaceId) {
    throw badRequest('Survey is part of another workspace', { workspaceId: scope });
  }
  const createdAt = timestampIn('createdAt', body.createdAt) ?? toTimestamp(context.clock());
  const updatedAt = timestampIn('updatedAt', body.updatedAt) ?? createdAt;
  return createResponse(context, surveyId, (survey) => {
    const { data = {}, language = null, ttc = {} } = changeIn(body, survey, context.config.publicUrl);
    return {
      finished: body.finished,
      data,
      language,
      ttc,
      variables: body.variables ?? {},
      meta: withoutNull(body.meta),
      displayId: body.displayId || null,
      singleUseId: body.singleUseId || null,
      endingId: body.endingId ?? null,
      createdAt,
      updatedAt,
      respondent: userId ? { by: 'userId', value: userId } : null,
    };
  });
}

/** Stores meta as sent, without fields that are null. */
function withoutNull(meta: NewManagementResponse['meta']): ResponseMeta {
  const { userAgent, ...texts } = meta ?? {};
  const filled = (fields: Readonly<Record<string, unknown>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  const agent = filled(userAgent ?? {});
  return { ...filled(texts), ...(Object.keys(agent).length > 0 ? { userAgent: agent } : {}) };
}
