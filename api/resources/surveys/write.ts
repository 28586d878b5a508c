/**
 * Creates and changes surveys, each in one transaction.
 */

import type { Context } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { isUniqueViolation } from '#api/db/taken.ts';
import { badRequest, conflict } from '#api/errors.ts';
import { segments } from '#api/resources/segments/store.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { STATE_DOCUMENTS_BYTES_MAX } from '#api/values/content-limits.ts';
import { newId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { readContent } from './content.ts';
import { checkLanguages, checkTriggers, resolveSegmentId, resolveTriggers } from './references.ts';
import {
  findSurvey,
  insertSurvey,
  liveBytes,
  type Survey,
  updateSurvey,
  workspaceOfSurvey,
} from './store.ts';

type WriteParts = Pick<Context, 'db' | 'clock' | 'random' | 'states'>;

/**
 * Creates a survey.
 *
 * @param body what its author wrote
 * @throws ApiError bad_request, invalid_fields, conflict if the slug is taken
 */
export function createSurvey(parts: WriteParts, workspace: Workspace, body: unknown): Promise<Survey> {
  const { clock, random } = parts;
  const content = readContent(body, null);
  return saveSurvey(parts, async (trx) => {
    await lockRow(trx, 'workspaces', workspace.id);
    const now = toTimestamp(clock());
    const survey = await completed(trx, body, {
      id: newId(random),
      workspaceId: workspace.id,
      createdAt: now,
      updatedAt: now,
      content,
      segment: null,
      triggers: [],
    });
    await withinState(trx, survey, () => insertSurvey(trx, survey));
    return survey;
  });
}

/**
 * Changes the parts of a survey that its author wrote. The others stay as they are inside the transaction, because
 * another update may have come first.
 *
 * @returns null if the survey was deleted
 * @throws ApiError bad_request if it would leave its draft without a trigger; invalid_fields; conflict if
 *   the slug is taken
 */
export function changeSurvey(parts: WriteParts, id: string, body: unknown): Promise<Survey | null> {
  return saveSurvey(parts, async (trx) => {
    const stored = await findSurveyToChange(trx, id);
    if (stored === null) return null;
    const content = readContent(body, stored.content);
    const changed = { ...stored, content, updatedAt: toTimestamp(parts.clock()) };
    const survey = await completed(trx, body, changed);
    await withinState(trx, survey, () => updateSurvey(trx, survey));
    return survey;
  });
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

/** Runs a write in a transaction, and purges the states of SDKs. */
async function saveSurvey<S extends Survey | null>(
  { db, states }: WriteParts,
  write: (trx: Database) => Promise<S>,
): Promise<S> {
  try {
    const survey = await db.transaction().execute(write);
    if (survey !== null) states.purge(survey.workspaceId);
    return survey;
  } catch (error) {
    throw asConflict(error);
  }
}

function asConflict(error: unknown): unknown {
  if (isUniqueViolation(error, 'surveys.slug')) {
    return conflict('Another survey has this slug; choose another one');
  }
  return error;
}

/**
 * Adds the triggers and the segment of a body, or those that the survey had.
 *
 * @throws ApiError invalid_fields, bad_request
 */
async function completed(trx: Database, body: unknown, survey: Survey): Promise<Survey> {
  const given = isRecord(body) ? body : {};
  const { content, workspaceId } = survey;
  const isLink = content.type === 'link';
  if (given.languages !== undefined) await checkLanguages(trx, workspaceId, content.languages);
  const named =
    given.triggers === undefined ? survey.triggers : await resolveTriggers(trx, workspaceId, given.triggers);
  const triggers = isLink ? [] : named;
  checkTriggers(content, triggers);
  const segmentId =
    given.segmentId === undefined
      ? (survey.segment?.id ?? null)
      : await resolveSegmentId(trx, workspaceId, given.segmentId);
  const segment = segmentId === null ? null : await segments.find(trx, segmentId);
  return { ...survey, triggers, segment };
}
