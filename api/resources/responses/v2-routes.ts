/**
 * Responses on v2.
 *
 * Callers: API keys. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { type ApiError, badRequest } from '#api/errors.ts';
import { countResponses } from '#api/resources/surveys/response-counts.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { v2Resource } from '#api/resources/workspaces/resource.ts';
import { Id } from '#api/values/schemas.ts';
import { foreignFileQuestion, withAbsoluteFiles } from './file-answers.ts';
import {
  changeManagedResponse,
  createManagedResponse,
  deleteManagedResponse,
  reachableSurvey,
  withoutNull,
} from './management-write.ts';
import { type Answers, NewV2Response, V2ResponseChange, V2ResponseReply } from './schema.ts';
import { matchingResponses, type Response, responses, sizedResponses } from './store.ts';

const url = '/api/v2/management/responses';

export const v2ResponseRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const resource = v2Resource(app, context, {
    url,
    param: 'id',
    type: 'Response',
    rows: responses,
    reply: V2ResponseReply,
    toReplies: (found) => found.map(toReply),
  });

  resource.list(
    { query: { surveyId: Type.Optional(Id), contactId: Type.Optional(Id) }, refuses: ['bad_request'] },
    { findAll: responses.findAll, sized: (ids) => sizedResponses(db, ids) },
    async (query, request) => {
      const workspaceIds = readableWorkspaces(request);
      const isOfContact = query.contactId !== undefined;
      return {
        matching: await matchingResponses(db, workspaceIds, query),
        countKept: isOfContact ? undefined : () => countResponses(db, workspaceIds, query.surveyId),
      };
    },
  );

  app.post(
    url,
    {
      schema: { body: NewV2Response, response: { 201: resource.one } },
      config: { refuses: ['bad_request', 'not_found', 'conflict'] },
    },
    async (request, reply) => {
      const { body } = request;
      const survey = await reachableSurvey(context, request, body.surveyId);
      const made = await createManagedResponse(
        context,
        request,
        survey,
        body,
        { data: body.data, language: body.language ?? undefined, ttc: body.ttc ?? undefined },
        () => answerProblem(survey, body.data),
      );
      return reply.code(201).send({ data: toReply(made) });
    },
  );

  resource.read();

  resource.change({ body: V2ResponseChange, refuses: ['bad_request', 'conflict'] }, async (body, stored) => {
    const { data, endingId, finished, language, meta, ttc, variables } = body;
    return changeManagedResponse(context, stored, body, (survey) => ({
      change: {
        data,
        endingId,
        finished,
        language,
        meta: meta === undefined ? undefined : withoutNull(meta ?? {}),
        ttc: ttc ?? undefined,
        variables: variables ?? undefined,
        maps: 'replace',
      },
      check: () => answerProblem(survey, data ?? {}),
    }));
  });

  resource.remove({}, (stored, request) => deleteManagedResponse(context, stored, request.log));

  /** Returns the problem of an answer. Unlike on v1, it names the question. */
  function answerProblem(survey: BareSurvey, sent: Answers): ApiError | null {
    const questionId = foreignFileQuestion(survey, sent, config.publicUrl);
    const issue = 'Invalid file upload response';
    return questionId === null ? null : badRequest(issue, { [`response.data.${questionId}`]: issue });
  }

  /** Converts a response to the format of v2. Unlike on v1, the contact is an id, and there are no tags. */
  function toReply(response: Response) {
    const { workspaceId: _, ...shown } = response;
    return { ...shown, data: withAbsoluteFiles(response.data, config.publicUrl) };
  }
};
