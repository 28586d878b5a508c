/**
 * Creates and deletes responses for the management API, v1 and v2. The versions differ in the shapes of bodies and replies,
 * and in the errors of answers; they pass these in.
 */
import type { FastifyRequest } from 'fastify';
import { requireRight } from '#api/auth/plugin.ts';
import type { Context } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { timestampIn } from '#api/http/validation.ts';
import { deleteDisplay } from '#api/resources/displays/store.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { removeFiles } from '#api/storage/files.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { ReadAnswers } from './answers.ts';
import type { NewManagementResponse, ResponseMeta } from './schema.ts';
import { checkSentResponse, type SentResponse } from './size.ts';
import { deleteResponse, type Response } from './store.ts';
import { createResponse } from './write.ts';

/** @throws ApiError not_found, or unauthorized without the right that the method needs */
export async function reachableSurvey(
  { db }: Pick<Context, 'db'>,
  request: FastifyRequest,
  surveyId: string,
): Promise<AnsweredSurvey> {
  const survey = existing(await findAnsweredSurvey(db, surveyId), 'Survey', surveyId);
  requireRight(request, survey.workspaceId);
  return survey;
}

/**
 * @param body everything except the answers
 * @param answersFor returns the answers, or throws to refuse them
 */
export async function createManagedResponse(
  context: Context,
  request: FastifyRequest,
  body: Omit<NewManagementResponse, 'data'> & SentResponse,
  answersFor: (survey: AnsweredSurvey) => ReadAnswers,
): Promise<Response> {
  const { workspaceId } = await reachableSurvey(context, request, body.surveyId);
  checkSentResponse(body);
  const scope = scopeIn(body);
  if (scope !== null && (await reachableWorkspace(context, request, scope)).id !== workspaceId) {
    throw badRequest('Survey is part of another workspace', { workspaceId: scope });
  }
  const now = toTimestamp(context.clock());
  const createdAt = timestampIn('createdAt', body.createdAt);
  const updatedAt = timestampIn('updatedAt', body.updatedAt);
  const { userId } = body;
  return createResponse(context, body.surveyId, (survey) => {
    const { data, language = null, ttc = {} } = answersFor(survey);
    return {
      finished: body.finished,
      data,
      language,
      ttc,
      variables: body.variables ?? {},
      meta: withoutNull(body.meta ?? {}),
      displayId: body.displayId || null,
      singleUseId: body.singleUseId || null,
      endingId: body.endingId ?? null,
      createdAt: createdAt ?? now,
      updatedAt: updatedAt ?? createdAt ?? now,
      respondent: userId ? { by: 'userId', value: userId } : null,
    };
  });
}

/** Deletes a response with its display and its files. @returns false if the response was gone */
export async function deleteManagedResponse(context: Context, responseId: string): Promise<boolean> {
  return context.db.transaction().execute(async (trx) => {
    const row = await deleteResponse(trx, responseId);
    if (row !== null && row.displayId !== null) await deleteDisplay(trx, row.displayId);
    if (row !== null) await removeFiles(trx, { responseId }, toTimestamp(context.clock()));
    return row !== null;
  });
}

/** Stores meta as sent, without fields that are null. */
export function withoutNull({
  userAgent,
  ...texts
}: NonNullable<NewManagementResponse['meta']>): ResponseMeta {
  const filled = (fields: Readonly<Record<string, unknown>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  const agent = filled(userAgent ?? {});
  return { ...filled(texts), ...(Object.keys(agent).length > 0 ? { userAgent: agent } : {}) };
}
