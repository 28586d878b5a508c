/**
 * Creating and changing a response, the part that both APIs share: links to a display and a contact, times, and the
 * survey that ends itself. Each is one transaction.
 */
import type { Kysely } from 'kysely';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { badRequest, conflict, notFound } from '#api/errors.ts';
import { newId, type Random } from '#api/ids.ts';
import {
  attributesOf,
  type Contact,
  keepContact,
  keepContactByUserId,
} from '#api/resources/contacts/store.ts';
import { findDisplay } from '#api/resources/displays/store.ts';
import {
  type AnsweredSurvey,
  type BareSurvey,
  findSurveyNow,
  isOpen,
  type SurveyNow,
  surveyClosed,
} from '#api/resources/surveys/store.ts';
import { claimFiles } from '#api/storage/claims.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { answerError } from './answers.ts';
import { completeWhenDue } from './completion.ts';
import type { Respondent } from './lone-insert.ts';
import { comesAlone, insertLoneResponse, type LoneResponse } from './lone-write.ts';
import { mergeTimes, type Times } from './merge.ts';
import { type ResponseWritten, recordEvents } from './record-events.ts';
import type { Answers, ResponseMeta } from './schema.ts';
import { checkResponseSize } from './size.ts';
import {
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
  /** The id of the workspace that the client knows; absent: its own. */
  readonly scopeId?: string;
  /** Who must not have finished another response; absent or null: anybody may. See `respondentDigest`. */
  readonly emailDigest?: string | null;
}

/**
 * @throws ApiError bad_request when an answer or the display does not fit, conflict when the single-use link was used or the
 *   respondent finished another response
 */
export async function createResponse(
  parts: WriteParts,
  survey: BareSurvey,
  given: NewResponse,
  respondent: Respondent | null,
  { mustBeOpen, emailDigest = null }: CreationCheck,
): Promise<Response> {
  checkAnswers(survey, given);
  const { response, ...effects } = await parts.db.transaction().execute(async (trx) => {
    const { hasWebhooks } = await checkSurvey(trx, survey, mustBeOpen);
    const contact = await contactOf(trx, survey, respondent);
    if (given.displayId !== null) await checkDisplay(trx, survey, given.displayId, contact);
    if (given.singleUseId !== null && (await isSingleUseIdUsed(trx, survey.id, given.singleUseId))) {
      throw alreadySubmitted();
    }
    if (emailDigest !== null && (await hasFinished(trx, survey.id, emailDigest))) throw alreadyFinished();
    const attributes = contact === null ? null : await attributesOf(trx, [contact.id]);
    const made: Response = {
      ...newResponse(parts.random, survey, given),
      contactId: contact?.id ?? null,
      contactAttributes: contact === null ? null : (attributes?.get(contact.id) ?? {}),
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
    const written = { kind: 'responseCreated', response: made, survey, hasWebhooks } as const;
    return { response: made, ...(await settleChange(trx, parts, written)) };
  });
  spread(parts, survey, effects);
  return response;
}

/**
 * Asks the database for the insert, and for nothing else.
 *
 * @param survey as it was read, which may be a while ago
 * @returns the new id; null: the response does not come alone, or the survey or its workspace have changed since then
 * @throws ApiError bad_request when an answer does not fit
 */
export async function createLoneResponse(
  { db, random }: Pick<WriteParts, 'db' | 'random'>,
  survey: AnsweredSurvey,
  given: NewResponse,
  respondent: Respondent | null,
  { mustBeOpen, emailDigest = null, scopeId = survey.workspaceId }: CreationCheck,
): Promise<string | null> {
  checkAnswers(survey, given);
  if (mustBeOpen && !isOpen(survey)) return null;
  if (!comesAlone(survey, given, emailDigest)) return null;
  const made = newResponse(random, survey, given);
  return (await insertLoneResponse(db, made, respondent, survey, scopeId)) ? made.id : null;
}

function checkAnswers(survey: BareSurvey, { data, finished, meta }: NewResponse): void {
  const mustBeComplete = finished && !beginsInTheMiddle(meta);
  const error = answerError(survey, { given: data, all: data, finished, mustBeComplete });
  if (error !== null) throw error;
}

function newResponse(random: Random, survey: BareSurvey, given: NewResponse): LoneResponse {
  return {
    ...given,
    id: newId(random),
    workspaceId: survey.workspaceId,
    surveyId: survey.id,
    ttc: mergeTimes({}, given.ttc, given.finished),
  };
}

/** It is there until the transaction ends. */
async function contactOf(
  trx: Kysely<Database>,
  { workspaceId }: BareSurvey,
  respondent: Respondent | null,
): Promise<Contact | null> {
  if (respondent === null) return null;
  const { by, value } = respondent;
  return by === 'id' ? keepContact(trx, workspaceId, value) : keepContactByUserId(trx, workspaceId, value);
}

/**
 * @param mayChange called with the response as it is inside the transaction; throws to refuse
 * @throws ApiError not_found when it was deleted meanwhile, bad_request when an answer does not fit
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
    const { hasWebhooks } = await checkSurvey(trx, survey, mustBeOpen);
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
    const written = { kind: 'responseUpdated', response: changed, survey, hasWebhooks } as const;
    return { response: changed, ...(await settleChange(trx, parts, written)) };
  });
  spread(parts, survey, effects);
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
function wereAllAsked(survey: BareSurvey, { createdAt, meta }: Response): boolean {
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
  { content, id }: BareSurvey,
  mustBeOpen: boolean,
): Promise<SurveyNow> {
  if (content.autoComplete !== null) await lockRow(trx, 'surveys', id);
  const now = await findSurveyNow(trx, id);
  if (now === null) throw notFound('Survey', id);
  if (mustBeOpen && !now.isOpen) throw surveyClosed(id);
  return now;
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
  survey: BareSurvey,
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

interface Effects {
  readonly isSurveyCompleted: boolean;
  readonly hasEvents: boolean;
}

/** Of what others have to know, after the commit. */
function spread(
  { outbox, states }: Pick<WriteParts, 'outbox' | 'states'>,
  survey: BareSurvey,
  { hasEvents, isSurveyCompleted }: Effects,
): void {
  if (hasEvents) outbox.notify();
  if (isSurveyCompleted) states.purge(survey);
}

/** What a change brings about, in its transaction. */
async function settleChange(
  trx: Kysely<Database>,
  parts: WriteParts,
  written: Omit<ResponseWritten, 'isSurveyCompleted'>,
): Promise<Effects> {
  const { response, survey } = written;
  const isSurveyCompleted =
    response.finished && (await completeWhenDue(trx, survey, toTimestamp(parts.clock())));
  const hasEvents = await recordEvents(trx, parts, { ...written, isSurveyCompleted });
  return { isSurveyCompleted, hasEvents };
}
