/**
 * Creates and changes responses, for all APIs, each in one transaction: it reads the survey, checks the response, writes
 * the row, and writes everything that depends on it.
 */
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { hasManyWriters, lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { type ApiError, badRequest, conflict, existing } from '#api/errors.ts';
import { findDisplay } from '#api/resources/displays/store.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { responseCountsOf } from '#api/resources/surveys/response-counts.ts';
import { completeSurvey } from '#api/resources/surveys/store.ts';
import { claimFiles } from '#api/storage/claims.ts';
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { mergeTimes, type Times } from './answers.ts';
import { type ResponseWritten, recordEvents } from './record-events.ts';
import { answererOf, type Respondent } from './respondent.ts';
import type { Answers, ResponseMeta } from './schema.ts';
import { checkResponseSize } from './size.ts';
import { findResponse, type Response, responses, updateResponse } from './store.ts';
import { throwFirst } from './submission-checks.ts';

export interface NewResponse {
  readonly finished: boolean;
  readonly data: Answers;
  readonly variables: Readonly<Record<string, string | number>>;
  readonly ttc: Times;
  readonly meta: ResponseMeta;
  readonly displayId: string | null;
  readonly singleUseId: string | null;
  readonly endingId: string | null;
  readonly language: string | null;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  readonly respondent: Respondent | null;
}

/** Undefined fields are not changed. */
export interface Change {
  readonly finished?: boolean | undefined;
  readonly data?: Answers | undefined;
  readonly variables?: Readonly<Record<string, string | number>> | undefined;
  readonly ttc?: Times | undefined;
  readonly meta?: ResponseMeta | undefined;
  readonly endingId?: string | null | undefined;
  readonly language?: string | null | undefined;
  /** Whether answers, variables and times are merged into the stored ones, which is the default, or replace them. */
  readonly maps?: 'merge' | 'replace';
}

type WriteParts = Pick<Context, 'config' | 'db' | 'clock' | 'random' | 'outbox' | 'states'>;

/**
 * @param newFor makes the response, or throws to refuse it. It may be called twice, if a transaction is repeated
 * @throws ApiError not_found without the survey, bad_request if the display does not fit, conflict if the single-use link
 * was used
 */
export function createResponse(
  parts: WriteParts,
  surveyId: string,
  newFor: (survey: AnsweredSurvey) => NewResponse,
): Promise<Response> {
  return written(parts, surveyId, 'responseCreated', async (trx, survey) => {
    const { respondent, ...given } = newFor(survey);
    const { workspaceId } = survey;
    const answerer = await answererOf(trx, workspaceId, respondent);
    const problem = await displayError(trx, given.displayId, survey, answerer.contactId);
    throwFirst(() => problem);
    const ttc = mergeTimes({}, given.ttc, given.finished);
    const response = { ...given, ...answerer, id: newId(parts.random), workspaceId, surveyId, ttc };
    await refusedWhenTaken(() => responses.insert(trx, response));
    return response;
  });
}

/**
 * @param changeFor makes the change of the stored response, or throws to refuse it
 * @throws ApiError not_found if the response or its survey was deleted
 */
export function changeResponse(
  parts: WriteParts,
  { id, surveyId }: Pick<Response, 'id' | 'surveyId'>,
  changeFor: (survey: AnsweredSurvey, stored: Response) => Change,
): Promise<Response> {
  return written(parts, surveyId, 'responseUpdated', async (trx, survey) => {
    await lockRow(trx, 'responses', id);
    const stored = existing(await findResponse(trx, id), 'Response', id);
    const response = changed(stored, changeFor(survey, stored), toTimestamp(parts.clock()));
    checkResponseSize(response);
    await updateResponse(trx, response);
    return response;
  });
}

/** Runs a write in its transaction, with everything that depends on it, and notifies other code after the commit. */
async function written(
  parts: WriteParts,
  surveyId: string,
  kind: ResponseWritten['kind'],
  write: (trx: Database, survey: AnsweredSurvey) => Promise<Response>,
): Promise<Response> {
  const { response, survey, isSurveyCompleted, hasEvents } = await parts.db
    .transaction()
    .execute(async (trx) => {
      const survey = existing(await surveyForWriting(trx, surveyId), 'Survey', surveyId);
      const response = await write(trx, survey);
      await claimFiles(trx, response);
      const isSurveyCompleted =
        response.finished && (await completeWhenDue(trx, survey, toTimestamp(parts.clock())));
      const hasEvents = await recordEvents(trx, parts, { kind, response, survey, isSurveyCompleted });
      return { response, survey, isSurveyCompleted, hasEvents };
    });
  if (hasEvents) parts.outbox.notify();
  if (isSurveyCompleted) parts.states.purge(survey.workspaceId);
  return response;
}

/** Responses of one survey are written in parallel. Only with `autoComplete` do they wait, so that the count is exact. */
async function surveyForWriting(trx: Database, id: string): Promise<AnsweredSurvey | null> {
  const survey = await findAnsweredSurvey(trx, id);
  if (survey === null || survey.content.autoComplete === null || !hasManyWriters(trx)) return survey;
  await lockRow(trx, 'surveys', id);
  return findAnsweredSurvey(trx, id);
}

/** Ends a survey after `autoComplete` finished responses. @returns whether the survey has ended */
async function completeWhenDue(
  trx: Database,
  { id, content: { autoComplete } }: AnsweredSurvey,
  now: Timestamp,
): Promise<boolean> {
  if (autoComplete === null) return false;
  const counts = await responseCountsOf(trx, [id]);
  return (counts.get(id)?.finished ?? 0) >= autoComplete && (await completeSurvey(trx, id, now));
}

function changed(stored: Response, change: Change, now: Timestamp): Response {
  const merged = <V>(
    old: Readonly<Record<string, V>>,
    sent: Readonly<Record<string, V>> | undefined,
  ): Readonly<Record<string, V>> => ({ ...base(change, old, sent), ...sent });
  const { endingId, finished = stored.finished, language, meta = stored.meta, ttc } = change;
  return {
    ...stored,
    updatedAt: now,
    finished,
    data: merged(stored.data, change.data),
    variables: merged(stored.variables, change.variables),
    ttc: mergeTimes(base(change, stored.ttc, ttc), ttc ?? {}, finished),
    meta,
    endingId: endingId === undefined ? stored.endingId : endingId,
    language: language === undefined ? stored.language : language,
  };
}

/** Returns the map that a sent map is merged into. An absent map leaves the stored one unchanged. */
function base<V>(
  { maps }: Change,
  stored: Readonly<Record<string, V>>,
  sent: Readonly<Record<string, V>> | undefined,
): Readonly<Record<string, V>> {
  return maps === 'replace' && sent !== undefined ? {} : stored;
}

/** @returns why the response cannot have this display. Only a unique index can detect that another response has it */
async function displayError(
  trx: Database,
  displayId: string | null,
  survey: AnsweredSurvey,
  contactId: string | null,
): Promise<ApiError | null> {
  if (displayId === null) return null;
  const display = await findDisplay(trx, displayId);
  if (display === null) return badRequest('Display not found');
  if (display.workspaceId !== survey.workspaceId) return badRequest('Display is part of another workspace');
  if (display.surveyId !== survey.id) return badRequest('Display is part of another survey');
  const isOthers = contactId !== null && display.contactId !== null && display.contactId !== contactId;
  return isOthers ? badRequest('Display belongs to another contact') : null;
}

/** The unique indexes of responses, and the errors of those who come second. */
const taken: readonly (readonly [columns: readonly string[], error: () => ApiError])[] = [
  [['responses.displayId'], () => badRequest('Display is already linked to a response')],
  [
    ['responses.surveyId', 'responses.singleUseId'],
    () => conflict('Response already submitted for this single-use link'),
  ],
];

async function refusedWhenTaken(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    throw taken.find(([columns]) => isUniqueViolation(error, ...columns))?.[1]() ?? error;
  }
}
