/** Responses on the management API. Needs a key; rights go by method. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import type { Timestamp } from '#api/db/schema.ts';
import { badRequest, invalidFields, notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { requestValue } from '#api/http/request-value.ts';
import { findContactByUserId } from '#api/resources/contacts/store.ts';
import { deleteDisplay } from '#api/resources/displays/store.ts';
import { findSurvey, type Survey } from '#api/resources/surveys/store.ts';
import { reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { isRecord } from '#api/schemas.ts';
import { removeFilesOf } from '#api/storage/removal.ts';
import { readTimestamp, toTimestamp } from '#api/timestamps.ts';
import { fieldIdsOf, fileError, ruleError } from './answers.ts';
import { answersIn } from './body.ts';
import { toResponseReply, toResponseReplyWithNotes } from './reply.ts';
import {
  NewManagementResponse,
  ResponseChange,
  type ResponseMeta,
  ResponseReply,
  ResponseReplyWithNotes,
} from './schema.ts';
import { checkIdLengths, checkResponseSize, idsIn } from './size.ts';
import {
  deleteResponse,
  findResponse,
  listResponses,
  listResponsesOfWorkspaces,
  type Response,
  type ResponseWithRelations,
  withRelations,
} from './store.ts';
import { changeResponse, createResponse } from './write.ts';

/** Of one survey, unless the caller says otherwise. */
const LIMIT_DEFAULT = 25;
/** Of the whole list, also where a caller asks for more. */
const LIMIT_MAX = 1_000;
const Params = Type.Object({ responseId: Type.String() });
const Query = Type.Object({ ...ListQuery.properties, surveyId: Type.Optional(Type.String()) });

export const managementResponseRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, config } = context;
  const responses = requestValue<Response>('response');

  /** Before the body is read: 404 without the response, 401 without the right. */
  const loadResponse = async (request: FastifyRequest): Promise<void> => {
    const id = isRecord(request.params) ? String(request.params.responseId) : '';
    const response = await findResponse(db, id);
    if (response === null) throw notFound('Response', id);
    requireRight(request, response.workspaceId);
    responses.set(request, response);
  };

  const related = async (response: Response): Promise<ResponseWithRelations> => {
    const [found] = await withRelations(db, [response]);
    if (found === undefined) throw new Error('A response came back without itself');
    return found;
  };

  for (const prefix of ['/api/v1/management/responses', '/api/v1/responses']) {
    app.get(
      prefix,
      {
        schema: {
          querystring: Query,
          response: { 200: Type.Object({ data: Type.Array(ResponseReplyWithNotes) }) },
        },
      },
      async (request, reply) => {
        const { surveyId } = request.query;
        const workspaceIds = workspacesWith(principalOf(request), 'read');
        const survey = surveyId === undefined ? null : await reachableSurvey(request, surveyId);
        const options = { limitMax: LIMIT_MAX, limitDefault: survey === null ? LIMIT_MAX : LIMIT_DEFAULT };
        // With all that is shown of them, so that it counts for the size of the page.
        const found = await readPage({ request, reply }, request.query, options, async (page) =>
          withRelations(
            db,
            survey === null
              ? await listResponsesOfWorkspaces(db, workspaceIds, page)
              : await listResponses(db, { column: 'surveyId', id: survey.id }, page),
          ),
        );
        return { data: found.map((response) => toResponseReplyWithNotes(response, config.publicUrl)) };
      },
    );

    app.post(
      prefix,
      {
        schema: {
          body: NewManagementResponse,
          response: { 200: Type.Object({ data: ResponseReplyWithNotes }) },
        },
      },
      async (request) => {
        const { body } = request;
        checkResponseSize(body);
        checkIdLengths(idsIn(body));
        const survey = await reachableSurvey(request, body.surveyId);
        const scope = scopeIn(body);
        if (scope !== null && (await reachableWorkspace(context, request, scope)).id !== survey.workspaceId) {
          throw badRequest('Survey is part of another workspace', { workspaceId: scope });
        }
        const answers = answersIn(body, fieldIdsOf(survey));
        const error = fileError(survey, answers.data, config.publicUrl) ?? ruleError(survey, answers.data);
        if (error !== null) throw error;
        const now = toTimestamp(clock());
        const createdAt = timestampAt('createdAt', body.createdAt);
        const { userId } = body;
        const response = await createResponse(
          context,
          survey,
          {
            finished: body.finished ?? false,
            data: answers.data,
            language: answers.language ?? null,
            ttc: answers.ttc ?? {},
            variables: body.variables ?? {},
            meta: withoutNull(body.meta ?? {}),
            displayId: body.displayId ?? null,
            singleUseId: body.singleUseId ?? null,
            endingId: body.endingId ?? null,
            createdAt: createdAt ?? now,
            updatedAt: timestampAt('updatedAt', body.updatedAt) ?? createdAt ?? now,
          },
          async (trx) => (userId ? findContactByUserId(trx, survey.workspaceId, userId) : null),
          { mustBeOpen: false },
        );
        return { data: toResponseReplyWithNotes(await related(response), config.publicUrl) };
      },
    );

    app.get(
      `${prefix}/:responseId`,
      {
        schema: { params: Params, response: { 200: Type.Object({ data: ResponseReplyWithNotes }) } },
        onRequest: loadResponse,
      },
      async (request) => ({
        data: toResponseReplyWithNotes(await related(responses.get(request)), config.publicUrl),
      }),
    );

    app.put(
      `${prefix}/:responseId`,
      {
        schema: {
          params: Params,
          body: ResponseChange,
          response: { 200: Type.Object({ data: ResponseReply }) },
        },
        onRequest: loadResponse,
      },
      async (request) => {
        const { id, surveyId } = responses.get(request);
        const { body } = request;
        checkResponseSize(body);
        checkIdLengths(idsIn(body));
        const survey = await findSurvey(db, surveyId);
        if (survey === null) throw notFound('Survey', surveyId);
        const answers = answersIn(body, fieldIdsOf(survey));
        const change = {
          ...answers,
          finished: body.finished,
          variables: body.variables ?? undefined,
          endingId: body.endingId,
        };
        const response = await changeResponse(
          context,
          survey,
          id,
          change,
          (_stored, data) => {
            const error = fileError(survey, answers.data, config.publicUrl) ?? ruleError(survey, data);
            if (error !== null) throw error;
          },
          { mustBeOpen: false },
        );
        return { data: toResponseReply(await related(response), config.publicUrl) };
      },
    );

    app.delete(
      `${prefix}/:responseId`,
      {
        schema: { params: Params, response: { 200: Type.Object({ data: ResponseReply }) } },
        onRequest: loadResponse,
      },
      async (request) => {
        const response = await related(responses.get(request));
        await db.transaction().execute(async (trx) => {
          await deleteResponse(trx, response.id);
          if (response.displayId !== null) await deleteDisplay(trx, response.displayId);
        });
        await removeFilesOf(context, { responseId: response.id }, request.log);
        return { data: toResponseReply(response, config.publicUrl) };
      },
    );
  }

  async function reachableSurvey(request: FastifyRequest, surveyId: string): Promise<Survey> {
    const survey = await findSurvey(db, surveyId);
    if (survey === null) throw notFound('Survey', surveyId);
    requireRight(request, survey.workspaceId);
    return survey;
  }
};

/** @throws ApiError invalid_fields when the text is no date */
function timestampAt(path: string, text: string | null | undefined): Timestamp | null {
  if (text === null || text === undefined) return null;
  const timestamp = readTimestamp(text);
  if (timestamp === null) throw invalidFields({ [path]: 'must be an ISO 8601 date' });
  return timestamp;
}

/** Meta is kept as sent, but for fields that say nothing. */
function withoutNull({ userAgent, ...texts }: NonNullable<NewManagementResponse['meta']>): ResponseMeta {
  const filled = (fields: Readonly<Record<string, unknown>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  const agent = filled(userAgent ?? {});
  return { ...filled(texts), ...(Object.keys(agent).length > 0 ? { userAgent: agent } : {}) };
}
