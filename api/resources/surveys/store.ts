/** Surveys. Their documents name their languages and triggers. */
import { sql } from 'kysely';
import type { Database, SurveyTable, Timestamp } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { type ActionClass, actionClasses } from '#api/resources/action-classes/store.ts';
import { type Segment, segments } from '#api/resources/segments/store.ts';
import { claimFilesIn } from '#api/storage/claims.ts';
import { STATE_SURVEYS_MAX } from '#api/values/content-limits.ts';
import { isId } from '#api/values/ids.ts';
import type { SurveyContent } from './schema.ts';

export interface Survey {
  readonly id: string;
  readonly workspaceId: string;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  readonly content: SurveyContent;
  readonly segment: Segment | null;
  /** Triggers in the order in which they were given. */
  readonly triggers: readonly ActionClass[];
}

const documentBytes = sql<number>`octet_length("document")`.as('bytes');

/** A survey without the data of other tables. */
export type BareSurvey = Omit<Survey, 'segment' | 'triggers'>;

/** Finds surveys by id, in one query. Ids without a row are left out. */
export async function findBareSurveys(
  db: Database,
  ids: readonly string[],
): Promise<ReadonlyMap<string, BareSurvey>> {
  if (ids.length === 0) return new Map();
  const rows = await selectSurveys(db)
    .where('surveys.id', 'in', [...new Set(ids)])
    .execute();
  return new Map(rows.map((row) => [row.id, toBareSurvey(row)]));
}

export async function findSurvey(db: Database, id: string): Promise<Survey | null> {
  if (!isId(id)) return null;
  const row = await selectSurveys(db).where('surveys.id', '=', id).executeTakeFirst();
  if (row === undefined) return null;
  const [survey] = await withReferences(db, [row]);
  return survey ?? null;
}

/** Returns the workspace of a survey; null if there is no such survey. */
export async function workspaceOfSurvey(db: Database, id: string): Promise<string | null> {
  if (!isId(id)) return null;
  const row = await db.selectFrom('surveys').select('workspaceId').where('id', '=', id).executeTakeFirst();
  return row?.workspaceId ?? null;
}

/** Lists surveys, newest change first, ties by id. */
export async function listSurveys(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly Survey[]> {
  if (workspaceIds.length === 0) return [];
  const rows = await selectSurveys(db)
    .where('surveys.workspaceId', 'in', workspaceIds)
    .orderBy('surveys.updatedAt', 'desc')
    .orderBy('surveys.id', 'desc')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return withReferences(db, rows);
}

/** Finds surveys by id, in any order. Ids without a row are left out. */
export async function findSurveys(db: Database, ids: readonly string[]): Promise<readonly Survey[]> {
  if (ids.length === 0) return [];
  return withReferences(db, await selectSurveys(db).where('surveys.id', 'in', ids).execute());
}

/** Lists the surveys that SDKs see: app and website surveys in progress, newest first. */
export function listLiveSurveys(
  db: Database,
  workspaceId: string,
): Promise<readonly { readonly id: string }[]> {
  return forSdks(db, workspaceId).where('status', '=', 'inProgress').execute();
}

/** @returns the size of the surveys that SDKs see, including those that start by themselves */
export async function liveBytes(db: Database, workspaceId: string): Promise<number> {
  const rows = await forSdks(db, workspaceId)
    .where((where) =>
      where.or([
        where('status', 'in', ['inProgress', 'scheduled']),
        where.and([where('status', '=', 'draft'), where('publishOn', 'is not', null)]),
      ]),
    )
    .execute();
  return rows.reduce((sum, { bytes }) => sum + bytes, 0);
}

function forSdks(db: Database, workspaceId: string) {
  return db
    .selectFrom('surveys')
    .select(['id', documentBytes])
    .where('workspaceId', '=', workspaceId)
    .where('type', 'in', ['app', 'website'])
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .limit(STATE_SURVEYS_MAX);
}

/** @throws the driver's unique violation when the slug is taken */
export async function insertSurvey(db: Database, survey: Survey): Promise<void> {
  const { id, workspaceId, createdAt } = survey;
  await db
    .insertInto('surveys')
    .values({ ...columnsOf(survey), id, workspaceId, createdAt })
    .execute();
  await claimPictures(db, survey);
}

/** Writes the whole survey. @throws the driver's unique violation when the slug is taken */
export async function updateSurvey(db: Database, survey: Survey): Promise<void> {
  await db.updateTable('surveys').set(columnsOf(survey)).where('id', '=', survey.id).execute();
  await claimPictures(db, survey);
}

/** Claims the files that the survey shows, so that they are not deleted. */
async function claimPictures(db: Database, { workspaceId, updatedAt, content }: Survey): Promise<void> {
  await claimFilesIn(db, { workspaceId, text: JSON.stringify(content), now: updatedAt });
}

/**
 * Deletes a survey with its responses and displays.
 *
 * @returns false if it was gone
 */
export async function deleteSurvey(db: Database, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('surveys').where('id', '=', id).executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Ends a survey that is in progress. @returns false if it was not */
export async function completeSurvey(db: Database, id: string, now: Timestamp): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('surveys')
    .set({ status: 'completed', updatedAt: now })
    .where('id', '=', id)
    .where('status', '=', 'inProgress')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

function columnsOf(survey: Survey) {
  const { name, type, status, createdBy, slug, ...document } = survey.content;
  return {
    name,
    type,
    status,
    createdBy,
    slug,
    segmentId: survey.segment?.id ?? null,
    updatedAt: survey.updatedAt,
    publishOn: document.publishOn,
    closeOn: document.closeOn,
    document: JSON.stringify({ ...document, triggerIds: survey.triggers.map(({ id }) => id) }),
  };
}

/** Selects the columns for `toBareSurvey`. */
export function selectSurveys(db: Database) {
  return db
    .selectFrom('surveys')
    .innerJoin('workspaces', 'workspaces.id', 'surveys.workspaceId')
    .selectAll('surveys')
    .where('workspaces.deletingAt', 'is', null);
}

export function toBareSurvey(row: SurveyTable): BareSurvey {
  return read(row).survey;
}

/** Action classes that were deleted are no triggers any more. */
function read(row: SurveyTable): { readonly survey: BareSurvey; readonly triggerIds: readonly string[] } {
  const { name, type, status, createdBy, slug } = row;
  const { triggerIds = [], ...document } = JSON.parse(row.document);
  return {
    triggerIds,
    survey: {
      id: row.id,
      workspaceId: row.workspaceId,
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      content: { ...document, name, type, status, createdBy, slug },
    },
  };
}

/** Makes two queries for any number of surveys. */
async function withReferences(db: Database, rows: readonly SurveyTable[]): Promise<readonly Survey[]> {
  const all = rows.map((row) => ({ ...read(row), segmentId: row.segmentId }));
  const actions = await actionClasses.findAll(
    db,
    all.flatMap(({ triggerIds }) => triggerIds),
  );
  const found = await segments.findAll(
    db,
    all.flatMap(({ segmentId }) => segmentId ?? []),
  );
  const actionOf = new Map(actions.map((action) => [action.id, action]));
  const segmentOf = new Map(found.map((segment) => [segment.id, segment]));
  return all.map(({ survey, triggerIds, segmentId }) => ({
    ...survey,
    triggers: triggerIds.flatMap((id) => actionOf.get(id) ?? []),
    segment: segmentOf.get(segmentId ?? '') ?? null,
  }));
}
