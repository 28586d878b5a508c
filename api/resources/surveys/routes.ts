/**
 * Surveys on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 * Single-use links need the right to write.
 */
import { Type } from 'typebox';
import { readableWorkspaces, requireRight } from '#api/auth/plugin.ts';
import type { Context, Routes } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { readPage } from '#api/http/pagination.ts';
import { shownSegment } from '#api/resources/segments/store.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { linkAddressOf } from '#api/values/survey-url.ts';
import { toQuestions } from './blocks.ts';
import { removeSurvey } from './deletion.ts';
import { SurveyReply } from './schema.ts';
import { newLink } from './single-use.ts';
import { findSurvey, listSurveys, type Survey } from './store.ts';
import { changeSurvey, createSurvey } from './write.ts';

/** The maximum size of a page, and the number of surveys that are read at once. */
const PAGE = { limitMax: 500, atOnce: 10, skipName: 'offset' };
const SINGLE_USE_LINKS_DEFAULT = 10;
const SINGLE_USE_LINKS_MAX = 5_000;

/** content.ts reads the bodies. The description shows them as schema.ts does. */
export const AnyNewSurvey = Type.Object({}, { description: 'A new survey' });
export const AnySurveyChange = Type.Object({}, { description: 'A change of a survey' });

const Page = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1 })),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
});

export const surveyRoutes: Routes = async (app, { context }) => {
  const { db } = context;

  for (const url of ['/api/v1/management/surveys', '/api/v1/surveys']) {
    const resource = workspaceResource(app, context, {
      version: 'v1',
      url,
      param: 'surveyId',
      type: 'Survey',
      rows: { find: findSurvey, list: listSurveys },
      isInState: true,
      reply: SurveyReply,
      toReplies: (found) => found.map(toReply),
    });

    app.get(
      url,
      {
        schema: { querystring: Page, response: { 200: Type.Object({ data: Type.Array(SurveyReply) }) } },
        config: { needsNoWorkspace: true },
      },
      async (request, reply) => {
        const workspaceIds = readableWorkspaces(request);
        const { limit, offset: skip } = request.query;
        const query = { ...(limit === undefined ? {} : { limit }), ...(skip === undefined ? {} : { skip }) };
        const found = await readPage({ request, reply }, query, PAGE, async (page) =>
          (await listSurveys(db, workspaceIds, page)).map(toReply),
        );
        return { data: found };
      },
    );

    resource.create(AnyNewSurvey, (body, workspace) => createSurvey(context, workspace, body));
    resource.read();
    resource.change(AnySurveyChange, async (body, { id }) =>
      existing(await changeSurvey(context, id, body), 'Survey', id),
    );
    resource.remove((survey) => removeSurvey(context, survey));

    app.get(
      `${url}/:surveyId/singleUseIds`,
      {
        schema: {
          summary: 'Make links to a survey that work once',
          params: Type.Object({ surveyId: Type.String() }),
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

function toReply(survey: Survey) {
  const { content, triggers, segment: _, ...row } = survey;
  const segment = shownSegment(survey);
  const { id, workspaceId: environmentId } = row;
  return {
    ...row,
    ...content,
    environmentId,
    // Clients expect it. Nothing archives surveys.
    archivedAt: null,
    questions: toQuestions(content.blocks),
    triggers: triggers.map((actionClass) => ({ actionClass: { ...actionClass, environmentId } })),
    segment: segment === null ? null : { ...segment, environmentId, surveys: [id] },
    projectOverwrites: content.workspaceOverwrites,
    productOverwrites: content.workspaceOverwrites,
  };
}

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
