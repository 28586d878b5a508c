/**
 * Creates and changes responses, for all APIs: writes the row, and everything that depends on it.
 */
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { badRequest, conflict, existing, notFound } from '#api/errors.ts';
import {
  type AnsweredSurvey,
  findSurveyNow,
  isOpen,
  type SurveyNow,
  surveyClosed,
} from '#api/resources/surveys/answered.ts';
import type { BareSurvey } from '#api/resources/surveys/store.ts';
import { claimFiles, namesFiles } from '#api/storage/claims.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { completeWhenDue } from './completion.ts';
import { findDisplayProblem, type Insertion, insertResponse, type Respondent } from './insert.ts';
import { mergeTimes, type Times } from './merge.ts';
import { hasEvents, type ResponseWritten, recordEvents } from './record-events.ts';
import type { Answers, ResponseMeta } from './schema.ts';
import { checkResponseSize } from './size.ts';
import { findResponse, hasFinished, type Response, updateResponse } from './store.ts';
import { isOneResponsePerEmail } from './submission-checks.ts';

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
}

type WriteParts = Pick<Context, 'db' | 'clock' | 'random' | 'outbox' | 'states'>;

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

/** Checks inside the transaction, because the survey may have ended or been deleted since the request arrived. */
interface SurveyCheck {
  /** Whether the survey must be in progress. */
  readonly mustBeOpen: boolean;
}

interface CreationCheck extends SurveyCheck {
  /** The respondent must not have finished another response. Absent or null: may have. See `respondentDigest`. */
  readonly emailDigest?: string | null;
}

/**
 * @throws ApiError bad_request if the display does not fit, conflict if the single-use link was used or
 * the respondent has finished another response
 */
export async function createResponse(
  parts: WriteParts,
  survey: AnsweredSurvey,
  given: NewResponse,
  respondent: Respondent | null,
  { mustBeOpen, emailDigest = null }: CreationCheck,
): Promise<Response> {
  const check = { mustBeOpen, emailDigest };
  const alone = await createResponseAlone(parts, survey, given, respondent, check);
  if (alone !== null) return alone;
  const insertion = {
    response: newResponse(parts.random, survey, given),
    respondent,
    emailDigest,
    version: null,
  };
  const { response, ...effects } = await parts.db.transaction().execute(async (trx) => {
    const { hasWebhooks } = await checkSurvey(trx, survey, mustBeOpen, parts.clock());
    if (emailDigest !== null && (await hasFinished(trx, survey.id, emailDigest))) throw alreadyFinished();
    const made = await insert(trx, insertion);
    if (made === null) {
      const problem = await findDisplayProblem(trx, insertion);
      throw problem === null ? notFound('Survey', survey.id) : badRequest(problem);
    }
    await claimFiles(trx, made);
    const written = { kind: 'responseCreated', response: made, survey, hasWebhooks } as const;
    return { response: made, ...(await settleChange(trx, parts, written)) };
  });
  spread(parts, survey, effects);
  return response;
}

/**
 * Creates a response with one statement and without a transaction, which is enough for most.
 *
 * @param survey may have been read a while ago
 * @returns null if the survey has changed since then, or it takes more than one statement
 * @throws ApiError likewise
 */
export async function createResponseAlone(
  { clock, db, random }: Pick<WriteParts, 'clock' | 'db' | 'random'>,
  survey: AnsweredSurvey,
  given: NewResponse,
  respondent: Respondent | null,
  { mustBeOpen, emailDigest = null }: CreationCheck,
): Promise<Response | null> {
  const isAlone =
    survey.content.autoComplete === null &&
    emailDigest === null &&
    !hasEvents(survey, given, survey.hasWebhooks) &&
    !namesFiles(given.data);
  if (!isAlone || (mustBeOpen && !isOpen(survey, clock()))) return null;
  const response = newResponse(random, survey, given);
  return insert(db, { response, respondent, emailDigest, version: survey.version });
}

async function insert(db: Database, insertion: Insertion): Promise<Response | null> {
  try {
    return await insertResponse(db, insertion);
  } catch (error) {
    if (isUniqueViolation(error, 'responses.displayId')) {
      throw badRequest('Display is already linked to a response');
    }
    if (isUniqueViolation(error, 'responses.surveyId', 'responses.singleUseId')) {
      throw conflict('Response already submitted for this single-use link');
    }
    if (isUniqueViolation(error, 'responses.surveyId', 'responses.emailDigest')) throw alreadyFinished();
    throw error;
  }
}

function newResponse(random: Random, survey: BareSurvey, given: NewResponse): Insertion['response'] {
  return {
    ...given,
    id: newId(random),
    workspaceId: survey.workspaceId,
    surveyId: survey.id,
    ttc: mergeTimes({}, given.ttc, given.finished),
  };
}

/**
 * @param mayChange called with the response as it is inside the transaction; throws to refuse
 * @throws ApiError not_found if it was deleted
 */
export async function changeResponse(
  parts: WriteParts,
  survey: BareSurvey,
  responseId: string,
  change: Change,
  mayChange: (stored: Response) => void,
  { mustBeOpen }: SurveyCheck,
): Promise<Response> {
  const { response, ...effects } = await parts.db.transaction().execute(async (trx) => {
    const { hasWebhooks } = await checkSurvey(trx, survey, mustBeOpen, parts.clock());
    await lockRow(trx, 'responses', responseId);
    const stored = existing(await findResponse(trx, responseId), 'Response', responseId);
    mayChange(stored);
    const data = { ...base(change, stored.data, change.data), ...change.data };
    const finished = change.finished ?? stored.finished;
    const changed: Response = {
      ...stored,
      updatedAt: toTimestamp(parts.clock()),
      finished,
      data,
      variables: { ...base(change, stored.variables, change.variables), ...change.variables },
      ttc: mergeTimes(base(change, stored.ttc, change.ttc), change.ttc ?? {}, finished),
      meta: change.meta ?? stored.meta,
      endingId: change.endingId === undefined ? stored.endingId : change.endingId,
      language: change.language === undefined ? stored.language : change.language,
    };
    checkResponseSize(changed);
    await unlessTaken(['responses.surveyId', 'responses.emailDigest'], alreadyFinished(), () =>
      updateResponse(trx, changed, isOneResponsePerEmail(survey)),
    );
    await claimFiles(trx, changed);
    const written = { kind: 'responseUpdated', response: changed, survey, hasWebhooks } as const;
    return { response: changed, ...(await settleChange(trx, parts, written)) };
  });
  spread(parts, survey, effects);
  return response;
}

/** Returns the map that a given map is merged into. An absent map leaves the stored one unchanged. */
function base<V>(
  { maps }: Change,
  stored: Readonly<Record<string, V>>,
  sent: Readonly<Record<string, V>> | undefined,
): Readonly<Record<string, V>> {
  return maps === 'replace' && sent !== undefined ? {} : stored;
}

/**
 * Checks the survey. Responses of one survey are written in parallel. Only with `autoComplete` do they wait for each
 * other, so that the count is exact.
 */
async function checkSurvey(
  trx: Database,
  { content, id }: BareSurvey,
  mustBeOpen: boolean,
  time: Millis,
): Promise<SurveyNow> {
  if (content.autoComplete !== null) await lockRow(trx, 'surveys', id);
  const now = existing(await findSurveyNow(trx, id, time), 'Survey', id);
  if (mustBeOpen && !now.isOpen) throw surveyClosed(id);
  return now;
}

function alreadyFinished() {
  return conflict('A response from this email address was already submitted');
}

interface Effects {
  readonly isSurveyCompleted: boolean;
  readonly hasEvents: boolean;
}

/** Notifies other code of the change, after the commit. */
function spread(
  { outbox, states }: Pick<WriteParts, 'outbox' | 'states'>,
  survey: BareSurvey,
  { hasEvents, isSurveyCompleted }: Effects,
): void {
  if (hasEvents) outbox.notify();
  if (isSurveyCompleted) states.purge(survey);
}

/** Writes everything that depends on a change, in its transaction. */
async function settleChange(
  trx: Database,
  parts: WriteParts,
  written: Omit<ResponseWritten, 'isSurveyCompleted'>,
): Promise<Effects> {
  const { response, survey } = written;
  const isSurveyCompleted =
    response.finished && (await completeWhenDue(trx, survey, toTimestamp(parts.clock())));
  const hasEvents = await recordEvents(trx, parts, { ...written, isSurveyCompleted });
  return { isSurveyCompleted, hasEvents };
}
