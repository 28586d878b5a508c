/**
 * Surveys on v1, and a list of them on v3.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 * Single-use links need the right to write.
 */
import { Type } from 'typebox';
import { readableWorkspaces, requireRight } from '#api/auth/plugin.ts';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, existing, notFound } from '#api/errors.ts';
import { readLargePage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { v3List } from '#api/resources/workspaces/v3-list.ts';
import { TextOrNull } from '#api/values/schemas.ts';
import { linkAddressOf } from '#api/values/survey-url.ts';
import { removeSurvey } from './deletion.ts';
import { toSurveyReply } from './reply.ts';
import { NewSurvey, SurveyChange } from './request-shapes.ts';
import { DeletedSurveyReply, SurveyReply } from './schema.ts';
import { newLink } from './single-use.ts';
import { findSurvey, findSurveys, listSurveys, type Survey } from './store.ts';
import { changeSurvey, createSurvey } from './write.ts';

/** Maximum size of a page. The next page continues with `offset`. */
const SURVEYS_MAX = 500;
const SINGLE_USE_LINKS_DEFAULT = 10;
const SINGLE_USE_LINKS_MAX = 5_000;

const Params = Type.Object({ surveyId: Type.String() });
const Page = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
});
const one = { 200: Type.Object({ data: SurveyReply }) };
const many = { 200: Type.Object({ data: Type.Array(SurveyReply) }) };

export const surveyRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const surveys = workspaceRow({ db, type: 'Survey', param: 'surveyId', find: findSurvey });

  for (const prefix of ['/api/v1/management/surveys', '/api/v1/surveys']) {
    app.get(
      prefix,
      { schema: { querystring: Page, response: many }, config: { needsNoWorkspace: true } },
      async (request, reply) => {
        const workspaceIds = readableWorkspaces(request);
        const { limit, offset } = request.query;
        const found = await readLargePage(
          { request, reply },
          { ...(limit === undefined ? {} : { limit }), ...(offset === undefined ? {} : { skip: offset }) },
          { limitMax: SURVEYS_MAX, skipName: 'offset' },
          (page) => listSurveys(db, workspaceIds, page),
          async (ids) => (await findSurveys(db, ids)).map(toSurveyReply),
        );
        return { data: found };
      },
    );

    app.post(
      prefix,
      {
        schema: { response: one },
        config: { reads: { 'application/json': NewSurvey } },
        preValidation: loadBodyWorkspace(context),
      },
      async (request) => {
        const workspace = workspaceOf(request);
        const survey = await createSurvey(context, workspace, request.body);
        return { data: toSurveyReply(survey) };
      },
    );

    app.get(
      `${prefix}/:surveyId`,
      { schema: { params: Params, response: one }, onRequest: surveys.load },
      async (request) => ({ data: toSurveyReply(surveys.of(request)) }),
    );

    app.put(
      `${prefix}/:surveyId`,
      {
        schema: { params: Params, response: one },
        config: { reads: { 'application/json': SurveyChange } },
        onRequest: surveys.load,
      },
      async (request) => {
        const { id } = surveys.of(request);
        const survey = await changeSurvey(context, id, request.body);
        if (survey === null) throw notFound('Survey', id);
        return { data: toSurveyReply(survey) };
      },
    );

    app.delete(
      `${prefix}/:surveyId`,
      {
        schema: { params: Params, response: { 200: Type.Object({ data: DeletedSurveyReply }) } },
        onRequest: surveys.load,
      },
      async (request) => {
        const survey = surveys.of(request);
        if (!(await removeSurvey(context, survey, request.log))) throw notFound('Survey', survey.id);
        // The schema leaves out what the reply to a deletion does not have.
        return { data: { ...toSurveyReply(survey), questions: [] } };
      },
    );

    app.get(
      `${prefix}/:surveyId/singleUseIds`,
      {
        schema: {
          summary: 'Make links to a survey that work once',
          params: Params,
          querystring: Type.Object({ limit: Type.Optional(Type.Integer()) }),
          response: { 200: Type.Object({ data: Type.Array(Type.String()) }) },
        },
      },
      async (request) => {
        const { surveyId } = request.params;
        const survey = existing(await findSurvey(db, surveyId), 'Survey', surveyId);
        // A person with such a link may write, so the right to read is not enough.
        requireRight(request, survey.workspaceId, 'write');
        return { data: singleUseLinks(context, survey, request.query.limit ?? SINGLE_USE_LINKS_DEFAULT) };
      },
    );
  }
};

const V3Survey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  workspaceId: Type.String(),
  type: Type.String(),
  status: Type.String(),
  publishOn: TextOrNull,
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const v3SurveyRoutes: Routes = async (app, { context }) => {
  v3List(app, context, '/api/v3/surveys', V3Survey, (workspaceId) =>
    context.db
      .selectFrom('surveys')
      .select(['id', 'name', 'workspaceId', 'type', 'status', 'publishOn', 'createdAt', 'updatedAt'])
      .where('workspaceId', '=', workspaceId),
  );
};

/** @throws ApiError bad_request for a wrong number, and for surveys that have no such links */
function singleUseLinks(context: Context, survey: Survey, count: number): string[] {
  if (count < 1) throw badRequest('Limit cannot be less than 1');
  if (count > SINGLE_USE_LINKS_MAX) throw badRequest(`Limit cannot be more than ${SINGLE_USE_LINKS_MAX}`);
  const { type, singleUse } = survey.content;
  if (type !== 'link') throw badRequest('Single use links are only available for link surveys');
  if (singleUse?.enabled !== true) throw badRequest('Single use links are not enabled for this survey');
  const address = linkAddressOf(context.config, survey.id);
  return Array.from({ length: count }, () => newLink(context, address, survey));
}
