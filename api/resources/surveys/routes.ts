/** Surveys on the management API. Needs a key; rights go by method. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { Type } from 'typebox';
import { principalOf, requireRight } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, conflict, notFound } from '#api/errors.ts';
import { readPage } from '#api/http/pagination.ts';
import { requestValue } from '#api/http/request-value.ts';
import { newId } from '#api/ids.ts';
import {
  findPrivateSegment,
  findSegment,
  insertSegment,
  type Segment,
} from '#api/resources/segments/store.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { isRecord } from '#api/schemas.ts';
import { removeFilesOf } from '#api/storage/removal.ts';
import { addressOf } from '#api/survey-url.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { readContent } from './content.ts';
import { deleteSurveyWithContent } from './deletion.ts';
import { resolveLanguages, resolveSegmentId, resolveTriggers } from './references.ts';
import { toSurveyReply } from './reply.ts';
import { SurveyReply } from './schema.ts';
import { newSingleUseLink } from './single-use.ts';
import { checkSurveySize } from './size.ts';
import { findSurvey, insertSurvey, listSurveys, type Survey, updateSurvey } from './store.ts';

/** Larger pages are cut to this size; the next page continues with `offset`. */
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

export const surveyRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, random, states } = context;
  const surveys = requestValue<Survey>('survey');

  /** Before the body is read: 404 without the survey, 401 without the right. */
  const loadSurvey = async (request: FastifyRequest): Promise<void> => {
    const id = isRecord(request.params) ? String(request.params.surveyId) : '';
    const survey = await findSurvey(db, id);
    if (survey === null) throw notFound('Survey', id);
    requireRight(request, survey.workspaceId);
    surveys.set(request, survey);
  };

  for (const prefix of ['/api/v1/management/surveys', '/api/v1/surveys']) {
    app.get(
      prefix,
      { schema: { querystring: Page, response: many }, config: { acceptsKeyWithoutWorkspace: true } },
      async (request, reply) => {
        const workspaceIds = workspacesWith(principalOf(request), 'read');
        const { limit, offset } = request.query;
        const found = await readPage(
          { request, reply },
          { ...(limit === undefined ? {} : { limit }), ...(offset === undefined ? {} : { skip: offset }) },
          { limitMax: SURVEYS_MAX, skipName: 'offset' },
          (page) => listSurveys(db, workspaceIds, { limit: page.limit, offset: page.skip }),
        );
        return { data: found.map(toSurveyReply) };
      },
    );

    app.post(
      prefix,
      { schema: { response: one }, preValidation: loadBodyWorkspace(context) },
      async (request) => {
        const workspace = workspaceOf(request);
        checkSurveySize(request.body);
        const content = readContent(request.body, null, () => newId(random));
        const now = toTimestamp(clock());
        const survey = await storing(() =>
          db.transaction().execute(async (trx) => {
            const complete = await completed(trx, request.body, {
              id: newId(random),
              workspaceId: workspace.id,
              environmentId: workspace.environmentId,
              createdAt: now,
              updatedAt: now,
              archivedAt: null,
              content,
              segment: null,
              triggers: [],
              languages: [],
            });
            await insertSurvey(trx, complete);
            return complete;
          }),
        );
        states.purge(survey);
        return { data: toSurveyReply(survey) };
      },
    );

    app.get(
      `${prefix}/:surveyId`,
      { schema: { params: Params, response: one }, onRequest: loadSurvey },
      async (request) => ({ data: toSurveyReply(surveys.get(request)) }),
    );

    app.put(
      `${prefix}/:surveyId`,
      { schema: { params: Params, response: one }, onRequest: loadSurvey },
      async (request) => {
        const { id } = surveys.get(request);
        checkSurveySize(request.body);
        const survey = await storing(() =>
          db.transaction().execute(async (trx) => {
            // Read again: another update may have come first while this one's body was on its way.
            const stored = await findSurvey(trx, id);
            if (stored === null) throw notFound('Survey', id);
            if (stored.archivedAt !== null) {
              throw badRequest('The survey is archived; restore it before changing it');
            }
            const content = readContent(request.body, stored.content, () => newId(random));
            const complete = await completed(trx, request.body, {
              ...stored,
              updatedAt: toTimestamp(clock()),
              content,
            });
            await updateSurvey(trx, complete);
            return complete;
          }),
        );
        states.purge(survey);
        return { data: toSurveyReply(survey) };
      },
    );

    app.delete(
      `${prefix}/:surveyId`,
      { schema: { params: Params, response: one }, onRequest: loadSurvey },
      async (request) => {
        const survey = surveys.get(request);
        await deleteSurveyWithContent(db, survey, toTimestamp(clock()));
        states.purge(survey);
        await removeFilesOf(context, { surveyId: survey.id }, request.log);
        return { data: toSurveyReply(survey) };
      },
    );

    app.get(
      `${prefix}/:surveyId/singleUseIds`,
      {
        schema: {
          params: Params,
          querystring: Type.Object({ limit: Type.Optional(Type.Integer()) }),
          response: { 200: Type.Object({ data: Type.Array(Type.String()) }) },
        },
      },
      async (request) => {
        const { surveyId } = request.params;
        const { limit = SINGLE_USE_LINKS_DEFAULT } = request.query;
        const survey = await findSurvey(db, surveyId);
        if (survey === null) throw notFound('Survey', surveyId);
        // Whoever holds such a link may write, so reading is not enough.
        requireRight(request, survey.workspaceId, 'write');
        if (limit < 1) throw badRequest('Limit cannot be less than 1');
        if (limit > SINGLE_USE_LINKS_MAX) {
          throw badRequest(`Limit cannot be more than ${SINGLE_USE_LINKS_MAX}`);
        }
        const { type, singleUse } = survey.content;
        if (type !== 'link') throw badRequest('Single use links are only available for link surveys');
        if (singleUse?.enabled !== true) {
          throw badRequest('Single use links are not enabled for this survey');
        }
        const { surveyUrl, publicUrl } = context.config;
        // Programs read the ids from the links, so there are some even before we know where surveys are answered.
        const address = addressOf(surveyUrl ?? `${publicUrl}/s/{surveyId}`, survey.id);
        const links = Array.from({ length: limit }, () =>
          newSingleUseLink(address, survey.id, singleUse.isEncrypted, context.signer, random),
        );
        return { data: links };
      },
    );
  }

  /** Adds what the body says, or the survey had, about languages, triggers and the segment. */
  async function completed(trx: Kysely<Database>, body: unknown, survey: Survey): Promise<Survey> {
    const given = isRecord(body) ? body : {};
    const { workspaceId } = survey;
    const isLink = survey.content.type === 'link';
    const languages =
      given.languages === undefined
        ? survey.languages
        : await resolveLanguages(trx, workspaceId, given.languages);
    const triggers =
      given.triggers === undefined
        ? survey.triggers
        : await resolveTriggers(trx, workspaceId, given.triggers);
    const segmentId =
      given.segmentId === undefined
        ? (survey.segment?.id ?? null)
        : await resolveSegmentId(trx, workspaceId, given.segmentId);
    const chosen = segmentId === null ? null : await findSegment(trx, segmentId);
    const segment = chosen ?? (isLink ? null : await privateSegment(trx, survey));
    return { ...survey, languages, triggers: isLink ? [] : triggers, segment };
  }

  /** SDKs show a survey only to members of its segment, so one that is for everybody needs a segment too. */
  async function privateSegment(trx: Kysely<Database>, survey: Survey): Promise<Segment> {
    const known = await findPrivateSegment(trx, survey.workspaceId, survey.id);
    if (known !== null) return known;
    const now = toTimestamp(clock());
    const segment: Segment = {
      id: newId(random),
      workspaceId: survey.workspaceId,
      title: survey.id,
      description: null,
      isPrivate: true,
      filters: [],
      createdAt: now,
      updatedAt: now,
    };
    await insertSegment(trx, segment);
    return segment;
  }
};

/** Runs a write; says so when the slug, or the title that the survey's own segment needs, is taken. */
async function storing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (isUniqueViolation(error, 'surveys.slug')) {
      throw conflict('Another survey has this slug; choose another one');
    }
    if (isUniqueViolation(error, 'segments.workspaceId', 'segments.title')) {
      throw conflict('A segment has the id of this survey as its title; rename that first');
    }
    throw error;
  }
}
