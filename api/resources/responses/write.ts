/**
 * Creating and changing a response, the part that both APIs share: links to a display and a contact, times, and the
 * survey that ends itself. Each is one transaction.
 */
import type { Kysely } from 'kysely';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { hasManyWriters, lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { badRequest, conflict, notFound } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { attributesOf, type Contact, findContactById } from '#api/resources/contacts/store.ts';
import { findDisplay } from '#api/resources/displays/store.ts';
import { completeSurvey, isSurveyOpen, type Survey, surveyClosed } from '#api/resources/surveys/store.ts';
import { claimFiles } from '#api/storage/claims.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { answerError } from './answers.ts';
import { mergeTimes, type Times } from './merge.ts';
import { recordEvents } from './record-events.ts';
import type { Answers, ResponseMeta } from './schema.ts';
import { checkResponseSize } from './size.ts';
import {
  countFinished,
  findResponse,
  findResponseIdOfDisplay,
  hasFinished,
  insertResponse,
  isSingleUseIdUsed,
  type Response,
  updateResponse,
} from './store.ts';
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

/** What a write needs besides the request. */
export type WriteParts = Pick<Context, 'db' | 'clock' | 'random' | 'outbox' | 'states'>;

/** What is undefined stays. */
export interface Change {
  readonly finished?: boolean | undefined;
  readonly data?: Answers | undefined;
  readonly variables?: Readonly<Record<string, string | number>> | undefined;
  readonly ttc?: Times | undefined;
  readonly meta?: ResponseMeta | undefined;
  readonly endingId?: string | null | undefined;
  readonly language?: string | null | undefined;
  /** Answers, variables and times that are sent are laid over the stored ones, or take their place. By default: merge. */
  readonly maps?: 'merge' | 'replace';
}

/** Asked inside the transaction: the survey may have ended or gone since the request came. */
export interface SurveyCheck {
  /** The survey must be in progress: respondents' responses end when it does. */
  readonly mustBeOpen: boolean;
}

export interface CreationCheck extends SurveyCheck {
  /** Who must not have finished another response; absent or null: anybody may. See `respondentDigest`. */
  readonly emailDigest?: string | null;
}

/**
 * @param contactIn finds whom the response is from, inside the transaction
 * @throws ApiError bad_request when an answer or the display does not fit, conflict when the single-use link was used or the
 *   respondent finished another response
 */
export async function createResponse(
  parts: WriteParts,
  survey: Survey,
  given: NewResponse,
  contactIn: (trx: Kysely<Database>) => Promise<Contact | null>,
  { mustBeOpen, emailDigest = null }: CreationCheck,
): Promise<Response> {
  const { data, finished } = given;
  const mustBeComplete = finished && !beginsInTheMiddle(given.meta);
  const error = answerError(survey, { given: data, all: data, finished, mustBeComplete });
  if (error !== null) throw error;
  const { isCompleted, response } = await parts.db.transaction().execute(async (trx) => {
    await checkSurvey(trx, survey, mustBeOpen);
    const contact = await keptContact(trx, contactIn);
    if (given.displayId !== null) await checkDisplay(trx, survey, given.displayId, contact);
    if (given.singleUseId !== null && (await isSingleUseIdUsed(trx, survey.id, given.singleUseId))) {
      throw alreadySubmitted();
    }
    if (emailDigest !== null && (await hasFinished(trx, survey.id, emailDigest))) throw alreadyFinished();
    const attributes = contact === null ? null : await attributesOf(trx, [contact.id]);
    const made: Response = {
      ...given,
      id: newId(parts.random),
      workspaceId: survey.workspaceId,
      surveyId: survey.id,
      contactId: contact?.id ?? null,
      contactAttributes: contact === null ? null : (attributes?.get(contact.id) ?? {}),
      ttc: mergeTimes({}, given.ttc, given.finished),
    };
    try {
      await insertResponse(trx, made, emailDigest);
    } catch (error) {
      if (isUniqueViolation(error, 'responses.displayId')) throw displayTaken();
      if (isUniqueViolation(error, 'responses.surveyId', 'responses.singleUseId')) throw alreadySubmitted();
      if (isUniqueViolation(error, 'responses.surveyId', 'responses.emailDigest')) throw alreadyFinished();
      throw error;
    }
    await claimFiles(trx, made);
    return { response: made, isCompleted: await settleChange(trx, parts, 'responseCreated', survey, made) };
  });
  parts.outbox.notify();
  if (isCompleted) parts.states.purge(survey);
  return response;
}

/**
 * @param mayChange called with the response as it is inside the transaction; throws to refuse
 * @throws ApiError not_found when it was deleted meanwhile, bad_request when an answer does not fit
 */
export async function changeResponse(
  parts: WriteParts,
  survey: Survey,
  responseId: string,
  change: Change,
  mayChange: (stored: Response) => void,
  { mustBeOpen }: SurveyCheck,
): Promise<Response> {
  const { isCompleted, response } = await parts.db.transaction().execute(async (trx) => {
    await checkSurvey(trx, survey, mustBeOpen);
    await lockRow(trx, 'responses', responseId);
    const stored = await findResponse(trx, responseId);
    if (stored === null) throw notFound('Response', responseId);
    mayChange(stored);
    const data = { ...base(change, stored.data, change.data), ...change.data };
    const finished = change.finished ?? stored.finished;
    const takesAnswersBack = change.maps === 'replace' && change.data !== undefined;
    const error = answerError(survey, {
      given: change.data ?? {},
      all: data,
      finished,
      mustBeComplete: finished && (!stored.finished || takesAnswersBack) && wereAllAsked(survey, stored),
    });
    if (error !== null) throw error;
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
    try {
      await updateResponse(trx, changed, isOneResponsePerEmail(survey));
    } catch (error) {
      if (isUniqueViolation(error, 'responses.surveyId', 'responses.emailDigest')) throw alreadyFinished();
      throw error;
    }
    await claimFiles(trx, changed);
    return {
      response: changed,
      isCompleted: await settleChange(trx, parts, 'responseUpdated', survey, changed),
    };
  });
  parts.outbox.notify();
  if (isCompleted) parts.states.purge(survey);
  return response;
}

/** What a sent map is laid over. One that is not sent stays either way. */
function base<V>(
  { maps }: Change,
  stored: Readonly<Record<string, V>>,
  sent: Readonly<Record<string, V>> | undefined,
): Readonly<Record<string, V>> {
  return maps === 'replace' && sent !== undefined ? {} : stored;
}

/** What was added to the survey after somebody began to answer it, they may never have seen. */
function wereAllAsked(survey: Survey, { createdAt, meta }: Response): boolean {
  return survey.updatedAt <= createdAt && !beginsInTheMiddle(meta);
}

/** A link may name the question to start at. */
function beginsInTheMiddle({ url }: ResponseMeta): boolean {
  return url !== undefined && URL.canParse(url) && new URL(url).searchParams.has('startAt');
}

/**
 * Responses of one survey are written side by side. Only where so many of them end it, one waits for the other: then what
 * is counted is exact.
 */
async function checkSurvey(
  trx: Kysely<Database>,
  { content, id }: Survey,
  mustBeOpen: boolean,
): Promise<void> {
  if (content.autoComplete !== null) await lockRow(trx, 'surveys', id);
  const isOpen = await isSurveyOpen(trx, id);
  if (isOpen === null) throw notFound('Survey', id);
  if (mustBeOpen && !isOpen) throw surveyClosed(id);
}

/** Whom the response is from; not deleted before the response is there. */
async function keptContact(
  trx: Kysely<Database>,
  contactIn: (trx: Kysely<Database>) => Promise<Contact | null>,
): Promise<Contact | null> {
  const found = await contactIn(trx);
  if (found === null || !hasManyWriters(trx)) return found;
  await lockRow(trx, 'contacts', found.id, 'keep');
  return findContactById(trx, found.id);
}

function alreadySubmitted() {
  return conflict('Response already submitted for this single-use link');
}

function alreadyFinished() {
  return conflict('A response from this email address was already submitted');
}

function displayTaken() {
  return badRequest('Display is already linked to a response');
}

/** @throws ApiError bad_request unless the display is of this survey, free, and of the same contact */
async function checkDisplay(
  trx: Kysely<Database>,
  survey: Survey,
  displayId: string,
  contact: Contact | null,
): Promise<void> {
  await lockRow(trx, 'displays', displayId, 'keep');
  const display = await findDisplay(trx, displayId);
  if (display === null) throw badRequest('Display not found');
  if (display.workspaceId !== survey.workspaceId) throw badRequest('Display is part of another workspace');
  if (display.surveyId !== survey.id) throw badRequest('Display is part of another survey');
  if ((await findResponseIdOfDisplay(trx, displayId)) !== null) {
    throw displayTaken();
  }
  if (display.contactId !== null && contact !== null && display.contactId !== contact.id) {
    throw badRequest('Display belongs to another contact');
  }
}

/** What a change brings about, in its transaction. @returns whether it ended the survey */
async function settleChange(
  trx: Kysely<Database>,
  parts: WriteParts,
  kind: 'responseCreated' | 'responseUpdated',
  survey: Survey,
  response: Response,
): Promise<boolean> {
  const isSurveyCompleted = await completeWhenDue(trx, parts, survey, response);
  await recordEvents(trx, parts, { kind, response, survey, isSurveyCompleted });
  return isSurveyCompleted;
}

/** `autoComplete`: so many finished responses end the survey. */
async function completeWhenDue(
  trx: Kysely<Database>,
  parts: WriteParts,
  survey: Survey,
  response: Response,
): Promise<boolean> {
  const { autoComplete } = survey.content;
  if (!response.finished || autoComplete === null) return false;
  if ((await countFinished(trx, survey.id)) < autoComplete) return false;
  return completeSurvey(trx, survey.id, toTimestamp(parts.clock()));
}
