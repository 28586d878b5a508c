/**
 * Creates, changes and deletes responses, for all APIs, each in one transaction: it reads the survey, checks the response,
 * writes the row, and writes everything that depends on it.
 */
import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { type ApiError, badRequest, conflict, existing, invalidFields } from '#api/errors.ts';
import { deleteDisplay, findDisplay } from '#api/resources/displays/store.ts';
import { type AnsweredSurvey, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { completeSurvey } from '#api/resources/surveys/store.ts';
import { claimFiles } from '#api/storage/claims.ts';
import { removeFiles } from '#api/storage/files.ts';
import { RESPONSE_BYTES_MAX } from '#api/values/content-limits.ts';
import { newId } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { readTimes } from './answers.ts';
import { type ResponseWritten, recordEvents } from './record-events.ts';
import { deleteResponse, findResponse, type Response, responses, updateResponse } from './store.ts';
import { throwFirst } from './submission-checks.ts';

/** The contact of the workspace that has this id or user id. If there is none, the response is anonymous. */
export interface Respondent {
  readonly by: 'id' | 'userId';
  readonly value: string;
}

export type NewResponse = Omit<
  Response,
  'id' | 'workspaceId' | 'surveyId' | 'contactId' | 'contactAttributes'
> & { readonly respondent: Respondent | null };

/** Undefined fields are not changed. */
export type Change = {
  readonly [Name in 'finished' | 'data' | 'variables' | 'ttc' | 'meta' | 'endingId' | 'language']?:
    | Response[Name]
    | undefined;
} & {
  /** Whether answers, variables and times replace the stored ones. Otherwise they are merged into them. */
  readonly replaces?: boolean;
};

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
    const ttc = readTimes(given.ttc, given.finished);
    const response = { ...given, ...answerer, id: newId(parts.random), workspaceId, surveyId, ttc };
    checkSize(response);
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
    checkSize(response);
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
  if (survey === null || survey.content.autoComplete === null) return survey;
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
  const last = await trx
    .selectFrom('responses')
    .select('surveyId')
    .where('surveyId', '=', id)
    .where('finished', '=', 1)
    .offset(autoComplete - 1)
    .limit(1)
    .executeTakeFirst();
  return last !== undefined && (await completeSurvey(trx, id, now));
}

function changed(stored: Response, change: Change, now: Timestamp): Response {
  const { endingId = stored.endingId, finished = stored.finished, language = stored.language } = change;
  const merged = <V>(old: V, sent: V | undefined): V =>
    sent === undefined || change.replaces === true ? (sent ?? old) : { ...old, ...sent };
  return {
    ...stored,
    updatedAt: now,
    finished,
    data: merged(stored.data, change.data),
    variables: merged(stored.variables, change.variables),
    ttc: readTimes(merged(stored.ttc, change.ttc), finished),
    meta: change.meta ?? stored.meta,
    endingId,
    language,
  };
}

/** @throws ApiError invalid_fields */
function checkSize({ data, variables, ttc, meta }: Response): void {
  if (Buffer.byteLength(JSON.stringify([data, variables, ttc, meta])) > RESPONSE_BYTES_MAX) {
    throw invalidFields({ data: `A response must not have more than ${RESPONSE_BYTES_MAX} bytes in total` });
  }
}

/** Finds who answered, with a copy of the attributes that the contact has now. Makes one query. */
async function answererOf(
  db: Database,
  workspaceId: string,
  respondent: Respondent | null,
): Promise<Pick<Response, 'contactId' | 'contactAttributes'>> {
  const nobody = { contactId: null, contactAttributes: null };
  if (respondent === null) return nobody;
  const rows = await db
    .selectFrom('contacts')
    .leftJoin('contactAttributes', 'contactAttributes.contactId', 'contacts.id')
    .leftJoin('contactAttributeKeys', 'contactAttributeKeys.id', 'contactAttributes.attributeKeyId')
    .select(['contacts.id', 'contactAttributeKeys.key', 'contactAttributes.value'])
    .where('contacts.workspaceId', '=', workspaceId)
    .where(`contacts.${respondent.by}`, '=', respondent.value)
    .orderBy('contactAttributeKeys.key')
    .execute();
  const [contact] = rows;
  if (contact === undefined) return nobody;
  const attributes = rows.flatMap(({ key, value }) => (key === null || value === null ? [] : [[key, value]]));
  return { contactId: contact.id, contactAttributes: Object.fromEntries(attributes) };
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

/** @throws ApiError for whoever comes second to a display or to a single-use link */
function refusedWhenTaken(write: () => Promise<void>): Promise<void> {
  return unlessTaken(['responses.displayId'], badRequest('Display is already linked to a response'), () =>
    unlessTaken(
      ['responses.surveyId', 'responses.singleUseId'],
      conflict('Response already submitted for this single-use link'),
      write,
    ),
  );
}

/** Deletes a response with its display and its files. @returns false if the response was gone */
export function removeResponse({ db, clock }: WriteParts, responseId: string): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const row = await deleteResponse(trx, responseId);
    if (row === null) return false;
    if (row.displayId !== null) await deleteDisplay(trx, row.displayId);
    await removeFiles(trx, { responseId }, toTimestamp(clock()));
    return true;
  });
}
