/**
 * Creates, changes and deletes responses for the management API, v1 and v2. The versions differ in the shapes of bodies
 * and replies, in how sent maps change stored ones, and in the errors of answers; they pass these in.
 */
import type { FastifyBaseLogger, FastifyRequest } from 'fastify';
import { requireRight } from '#api/auth/plugin.ts';
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import { type ApiError, badRequest, existing } from '#api/errors.ts';
import { timestampIn } from '#api/http/validation.ts';
import { deleteDisplay } from '#api/resources/displays/store.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { reachableWorkspace, scopeIn } from '#api/resources/workspaces/scope.ts';
import { removeFilesOf } from '#api/storage/removal.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { ReadAnswers } from './body.ts';
import type { NewManagementResponse, ResponseMeta } from './schema.ts';
import { checkSentResponse, type SentResponse } from './size.ts';
import { deleteResponse, findResponse, type Response } from './store.ts';
import { type Change, changeResponse, createResponse } from './write.ts';

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
 * @param check further checks of the answers, before those of `createResponse`
 */
export async function createManagedResponse(
  context: Context,
  request: FastifyRequest,
  survey: AnsweredSurvey,
  body: Omit<NewManagementResponse, 'data'> & SentResponse,
  answers: ReadAnswers,
  check: () => ApiError | null,
): Promise<Response> {
  checkSentResponse(body);
  const scope = scopeIn(body);
  if (scope !== null && (await reachableWorkspace(context, request, scope)).id !== survey.workspaceId) {
    throw badRequest('Survey is part of another workspace', { workspaceId: scope });
  }
  const error = check();
  if (error !== null) throw error;
  const now = toTimestamp(context.clock());
  const createdAt = timestampIn('createdAt', body.createdAt);
  const { userId } = body;
  return createResponse(
    context,
    survey,
    {
      finished: body.finished,
      data: answers.data,
      language: answers.language ?? null,
      ttc: answers.ttc ?? {},
      variables: body.variables ?? {},
      meta: withoutNull(body.meta ?? {}),
      displayId: body.displayId || null,
      singleUseId: body.singleUseId || null,
      endingId: body.endingId ?? null,
      createdAt: createdAt ?? now,
      updatedAt: timestampIn('updatedAt', body.updatedAt) ?? createdAt ?? now,
    },
    userId ? { by: 'userId', value: userId } : null,
    { mustBeOpen: false },
  );
}

interface ManagedChange {
  readonly change: Change;
  /** Additional checks of the answers, before those of `changeResponse`. */
  readonly check: () => ApiError | null;
}

/**
 * @param body for its size
 * @param changeFor makes the change, for the survey of the response
 */
export async function changeManagedResponse(
  context: Context,
  { id, surveyId }: Response,
  body: SentResponse,
  changeFor: (survey: AnsweredSurvey) => ManagedChange,
): Promise<Response> {
  checkSentResponse(body);
  const survey = existing(await findAnsweredSurvey(context.db, surveyId), 'Survey', surveyId);
  const { change, check } = changeFor(survey);
  return changeResponse(
    context,
    survey,
    id,
    change,
    () => {
      const error = check();
      if (error !== null) throw error;
    },
    { mustBeOpen: false },
  );
}

/** Deletes a response with its display, and then its files. @returns false if the response was gone */
export async function deleteManagedResponse(
  context: Context,
  { id, ...known }: Pick<Response, 'id' | 'displayId'>,
  log: FastifyBaseLogger,
): Promise<boolean> {
  let { displayId } = known;
  const remove = (): Promise<'deleted' | 'gone' | 'linked'> =>
    context.db.transaction().execute(async (trx) => {
      if (displayId !== null) await lockRow(trx, 'displays', displayId, 'delete');
      await lockRow(trx, 'responses', id);
      const now = (await findResponse(trx, id))?.displayId ?? displayId;
      const isCurrent = now === displayId;
      displayId = now;
      if (!isCurrent) return 'linked';
      if (!(await deleteResponse(trx, id))) return 'gone';
      if (displayId !== null) await deleteDisplay(trx, displayId);
      return 'deleted';
    });
  // A response gets at most one display. If that has just happened, the display is locked first, in a second
  // transaction.
  let outcome = await remove();
  if (outcome === 'linked') outcome = await remove();
  if (outcome !== 'deleted') return false;
  await removeFilesOf(context, { responseId: id }, log);
  return true;
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
