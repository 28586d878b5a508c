/**
 * Creates and changes surveys, for all versions of the API. Each version reads its own spelling of a survey. The
 * rules are applied here, in one transaction.
 */

import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, conflict } from '#api/errors.ts';
import { privateSegment } from '#api/resources/segments/private-segment.ts';
import { segments } from '#api/resources/segments/store.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { STATE_DOCUMENTS_BYTES_MAX } from '#api/values/content-limits.ts';
import { newId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { checkTriggers, resolveLanguages, resolveSegmentId, resolveTriggers } from './references.ts';
import type { SurveyContent } from './schema.ts';
import {
  findSurvey,
  insertSurvey,
  liveBytes,
  type Survey,
  setArchivedAt,
  updateSurvey,
  workspaceOfSurvey,
} from './store.ts';

export type WriteParts = Pick<Context, 'db' | 'clock' | 'random' | 'states'>;

/** Adds the other rows that the author refers to. */
export type Complete = (trx: Database, survey: Survey) => Promise<Survey>;

/** Inserts a survey with a new id, which refers to no other rows yet. */
export async function insertNewSurvey(
  trx: Database,
  { clock, random }: WriteParts,
  workspace: Workspace,
  content: SurveyContent,
  complete: Complete,
): Promise<Survey> {
  await lockRow(trx, 'workspaces', workspace.id);
  const now = toTimestamp(clock());
  const survey = await complete(trx, {
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
  checkTriggers(null, survey);
  await withinState(trx, survey, () => insertSurvey(trx, survey));
  return survey;
}

/**
 * @param change gets the survey as it is inside the transaction, because another update may have come first
 * @returns null if the survey was deleted
 * @throws ApiError bad_request if it is archived, or would leave its draft without a trigger
 */
export async function rewriteSurvey(
  trx: Database,
  { clock }: WriteParts,
  id: string,
  change: (trx: Database, stored: Survey) => Promise<Survey>,
): Promise<Survey | null> {
  const stored = await findSurveyToChange(trx, id);
  if (stored === null) return null;
  if (stored.archivedAt !== null) {
    throw badRequest('The survey is archived; restore it before changing it');
  }
  const survey = await change(trx, { ...stored, updatedAt: toTimestamp(clock()) });
  checkTriggers(stored, survey);
  await withinState(trx, survey, () => updateSurvey(trx, survey));
  return survey;
}

/**
 * Archives a survey, or restores it with its former status. Repeating it has no further effect. An archived survey
 * accepts no responses, is not shown, does not start or end by itself, and cannot be changed.
 *
 * @returns null if the survey was deleted
 */
export async function archiveSurvey(
  trx: Database,
  { clock }: WriteParts,
  id: string,
  action: 'archive' | 'restore',
): Promise<Survey | null> {
  const stored = await findSurveyToChange(trx, id);
  if (stored === null || (stored.archivedAt !== null) === (action === 'archive')) return stored;
  const now = toTimestamp(clock());
  const archivedAt = action === 'archive' ? now : null;
  await withinState(trx, stored, () => setArchivedAt(trx, id, archivedAt, now));
  return { ...stored, archivedAt, updatedAt: now };
}

/**
 * Runs a write. All SDKs download the surveys that are live, so their total is bounded.
 *
 * @throws ApiError bad_request if the total is too large, unless the write makes it smaller
 */
async function withinState(
  trx: Database,
  { workspaceId }: Survey,
  write: () => Promise<void>,
): Promise<void> {
  const before = await liveBytes(trx, workspaceId);
  await write();
  const bytes = await liveBytes(trx, workspaceId);
  if (bytes <= Math.max(STATE_DOCUMENTS_BYTES_MAX, before)) return;
  const allowed = `The app and website surveys that are in progress or scheduled may take ${STATE_DOCUMENTS_BYTES_MAX} bytes`;
  const advice = 'end another one, leave this one as a draft without a date, or make it smaller';
  throw badRequest('The survey does not fit beside the others of this workspace', {
    status: `${allowed}, and would take ${bytes}: ${advice}`,
  });
}

/** Locks the survey and the rows that it refers to until the transaction ends. */
async function findSurveyToChange(trx: Database, id: string): Promise<Survey | null> {
  const workspaceId = await workspaceOfSurvey(trx, id);
  if (workspaceId === null) return null;
  await lockRow(trx, 'workspaces', workspaceId);
  await lockRow(trx, 'surveys', id);
  return findSurvey(trx, id);
}

/**
 * Runs a write in a transaction, and purges the states of SDKs.
 *
 * @throws ApiError conflict if the slug, or the title that the survey's own segment needs, is taken
 */
export async function saveSurvey<S extends Survey | null>(
  { db, states }: WriteParts,
  write: (trx: Database) => Promise<S>,
): Promise<S> {
  try {
    const survey = await db.transaction().execute(write);
    if (survey !== null) states.purge(survey);
    return survey;
  } catch (error) {
    throw asConflict(error);
  }
}

/** Runs a write as `saveSurvey` does, with all checks, and rolls it back. */
export async function trySurvey<S extends Survey | null>(
  { db }: WriteParts,
  write: (trx: Database) => Promise<S>,
): Promise<S> {
  try {
    return await db.transaction().execute(async (trx) => {
      throw new TakenBack(await write(trx));
    });
  } catch (error) {
    if (error instanceof TakenBack) return error.result;
    throw asConflict(error);
  }
}

/** Thrown to roll a transaction back. */
class TakenBack<S> extends Error {
  readonly result: S;

  constructor(result: S) {
    super('This write was made to be taken back');
    this.result = result;
  }
}

function asConflict(error: unknown): unknown {
  if (isUniqueViolation(error, 'surveys.slug')) {
    return conflict('Another survey has this slug; choose another one');
  }
  if (isUniqueViolation(error, 'segments.workspaceId', 'segments.title')) {
    return conflict('A segment has the id of this survey as its title; rename that first');
  }
  return error;
}

/** Adds the languages, triggers and segment of a v1 body, or those that the survey had. */
export async function completed(
  trx: Database,
  parts: WriteParts,
  body: unknown,
  survey: Survey,
): Promise<Survey> {
  const given = isRecord(body) ? body : {};
  const { workspaceId } = survey;
  const isLink = survey.content.type === 'link';
  const languages =
    given.languages === undefined
      ? survey.languages
      : await resolveLanguages(trx, workspaceId, given.languages);
  const triggers =
    given.triggers === undefined ? survey.triggers : await resolveTriggers(trx, workspaceId, given.triggers);
  const segmentId =
    given.segmentId === undefined
      ? (survey.segment?.id ?? null)
      : await resolveSegmentId(trx, workspaceId, given.segmentId);
  const chosen = segmentId === null ? null : await segments.find(trx, segmentId);
  const segment = chosen ?? (isLink ? null : await privateSegment(trx, parts, survey, null));
  return { ...survey, languages, triggers: isLink ? [] : triggers, segment };
}
