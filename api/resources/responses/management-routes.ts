/**
 * Responses on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { notFound } from '#api/errors.ts';
import { ListQuery, readLargePage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { checkScope } from '#api/resources/workspaces/scope.ts';
import { answersIn, changeIn } from './answers.ts';
import { fileError } from './file-answers.ts';
import { createManagedResponse, deleteManagedResponse, reachableSurvey } from './management-write.ts';
import { toResponseReply, toResponseReplyWithNotes } from './reply.ts';
import { NewManagementResponse, ResponseChange, ResponseReply, ResponseReplyWithNotes } from './schema.ts';
import { checkSentResponse } from './size.ts';
import {
  listResponses,
  listResponsesOfWorkspaces,
  type Response,
  type ResponseWithRelations,
  responses,
  withRelations,
} from './store.ts';
import { throwFirst } from './submission-checks.ts';
import { changeResponse } from './write.ts';

const LIMIT_DEFAULT = 25;
/** The default and the maximum for the list of all surveys. */
const LIMIT_MAX = 1_000;
const Params = Type.Object({ responseId: Type.String() });
const Query = Type.Object({ ...ListQuery.properties, surveyId: Type.Optional(Type.String()) });
const one = { 200: Type.Object({ data: ResponseReply }) };
const oneWithNotes = { 200: Type.Object({ data: ResponseReplyWithNotes }) };
const many = { 200: Type.Object({ data: Type.Array(ResponseReplyWithNotes) }) };

export const managementResponseRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const row = workspaceRow({ db, type: 'Response', param: 'responseId', find: responses.find });

  for (const prefix of ['/api/v1/management/responses', '/api/v1/responses']) {
    app.get(
      prefix,
      {
        schema: { querystring: Query, response: many },
      },
      async (request, reply) => {
        const { surveyId } = request.query;
        const workspaceIds = readableWorkspaces(request);
        const survey = surveyId === undefined ? null : await reachableSurvey(context, request, surveyId);
        const options = { limitMax: LIMIT_MAX, limitDefault: survey === null ? LIMIT_MAX : LIMIT_DEFAULT };
        const found = await readLargePage(
          { request, reply },
          request.query,
          options,
          (page) =>
            survey === null
              ? listResponsesOfWorkspaces(db, workspaceIds, page)
              : listResponses(db, { column: 'surveyId', id: survey.id }, page),
          async (ids) =>
            (await withRelations(db, await responses.findAll(db, ids))).map((response) =>
              toResponseReplyWithNotes(response, config.publicUrl),
            ),
        );
        return { data: found };
      },
    );

    app.post(
      prefix,
      {
        schema: { body: NewManagementResponse, response: oneWithNotes },
        preValidation: checkScope,
      },
      async (request) => {
        const { body } = request;
        const response = await createManagedResponse(context, request, body, (survey) => {
          const answers = answersIn(body, survey);
          throwFirst(() => fileError(survey, answers.data, config.publicUrl));
          return answers;
        });
        return { data: toResponseReplyWithNotes(await related(db, response), config.publicUrl) };
      },
    );

    app.get(
      `${prefix}/:responseId`,
      {
        schema: { params: Params, response: oneWithNotes },
        onRequest: row.load,
      },
      async (request) => ({
        data: toResponseReplyWithNotes(await related(db, row.of(request)), config.publicUrl),
      }),
    );

    app.put(
      `${prefix}/:responseId`,
      {
        schema: { params: Params, body: ResponseChange, response: one },
        onRequest: row.load,
      },
      async (request) => {
        const { body } = request;
        checkSentResponse(body);
        const response = await changeResponse(context, row.of(request), (survey) => {
          const change = changeIn(body, survey);
          throwFirst(() => fileError(survey, change.data, config.publicUrl));
          return change;
        });
        return { data: toResponseReply(await related(db, response), config.publicUrl) };
      },
    );

    app.delete(
      `${prefix}/:responseId`,
      {
        schema: { params: Params, response: one },
        onRequest: row.load,
      },
      async (request) => {
        const response = await related(db, row.of(request));
        const isDeleted = await deleteManagedResponse(context, response.id);
        if (!isDeleted) throw notFound('Response', response.id);
        return { data: toResponseReply(response, config.publicUrl) };
      },
    );
  }
};

async function related(db: Database, response: Response): Promise<ResponseWithRelations> {
  const [found] = await withRelations(db, [response]);
  if (found === undefined) throw new Error('A response came back without itself');
  return found;
}
