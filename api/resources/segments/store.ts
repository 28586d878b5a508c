/**
 * Segments: groups of contacts that surveys are shown to. Every app survey has one; a survey for everybody has a
 * private one without filters.
 */
import { countRows } from '#api/db/count.ts';
import type { Database, Decoded, SegmentTable } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';

export type Segment = Decoded<SegmentTable, { isPrivate: boolean; filters: readonly unknown[] }>;

export async function findSegment(db: Database, id: string): Promise<Segment | null> {
  const row = await db.selectFrom('segments').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toSegment(row);
}

export async function findSegments(db: Database, ids: readonly string[]): Promise<readonly Segment[]> {
  if (ids.length === 0) return [];
  const rows = await db.selectFrom('segments').selectAll().where('id', 'in', ids).execute();
  return rows.map(toSegment);
}

/** @throws the driver's unique violation when the title is taken */
export async function insertSegment(db: Database, segment: Segment): Promise<void> {
  await db
    .insertInto('segments')
    .values({
      ...segment,
      isPrivate: segment.isPrivate ? 1 : 0,
      filters: JSON.stringify(segment.filters),
    })
    .execute();
}

/** Lists segments by workspace, in each by title, which is unique there. This is the order of the index. */
export async function listSegments(
  db: Database,
  workspaceIds: readonly string[],
  page: ListPage,
): Promise<readonly Segment[]> {
  const rows = await db
    .selectFrom('segments')
    .selectAll()
    .where('workspaceId', 'in', workspaceIds)
    .orderBy('workspaceId')
    .orderBy('title')
    .limit(page.limit)
    .offset(page.skip)
    .execute();
  return rows.map(toSegment);
}

/** Number of rows in one query. With the largest filters they take 6 MiB. */
const PORTION = 100;
/** Filters of most segments, which belong to a survey for everybody. They are not even parsed. */
const NO_FILTERS = '[]';

export interface StoredFilters {
  readonly id: string;
  readonly filters: readonly unknown[];
  /** Size of the filters as stored. */
  readonly bytes: number;
}

/** Returns all segments of a workspace, in the order of their titles, which are unique. Reads them in portions. */
export async function* eachSegment(db: Database, workspaceId: string): AsyncGenerator<StoredFilters> {
  for (let last: string | null = null; ; ) {
    let query = db
      .selectFrom('segments')
      .select(['id', 'title', 'filters'])
      .where('workspaceId', '=', workspaceId)
      .orderBy('title')
      .limit(PORTION);
    if (last !== null) query = query.where('title', '>', last);
    const rows: { id: string; title: string; filters: string }[] = await query.execute();
    for (const { id, filters } of rows) {
      yield {
        id,
        filters: filters === NO_FILTERS ? [] : JSON.parse(filters),
        bytes: Buffer.byteLength(filters),
      };
    }
    const end = rows.at(-1);
    if (end === undefined || rows.length < PORTION) return;
    last = end.title;
  }
}

/** Segments that do not belong to one survey. */
export function countSharedSegments(db: Database, workspaceId: string): Promise<number> {
  return countRows(
    db.selectFrom('segments').where('workspaceId', '=', workspaceId).where('isPrivate', '=', 0),
  );
}

/** Maps the id of a segment to the ids of its surveys, oldest first; at most `limit` in all. */
export async function surveysOfSegments(
  db: Database,
  segmentIds: readonly string[],
  limit: number,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await db
    .selectFrom('surveys')
    .select(['id', 'segmentId'])
    .where('segmentId', 'in', segmentIds)
    .orderBy('createdAt')
    .orderBy('id')
    .limit(limit)
    .execute();
  const surveys = new Map<string, string[]>();
  for (const { id, segmentId } of rows) {
    if (segmentId !== null) surveys.set(segmentId, [...(surveys.get(segmentId) ?? []), id]);
  }
  return surveys;
}

/**
 * @returns false if it was deleted meanwhile
 * @throws the driver's unique violation if the title is taken
 */
export async function updateSegment(db: Database, segment: Segment): Promise<boolean> {
  const { id, title, description, filters, updatedAt } = segment;
  const { numUpdatedRows } = await db
    .updateTable('segments')
    .set({ title, description, filters: JSON.stringify(filters), updatedAt })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function deleteSegment(db: Database, id: string): Promise<void> {
  await db.deleteFrom('segments').where('id', '=', id).execute();
}

/**
 * Deletes the private segment of a deleted survey. Shared segments stay. If another survey uses it, it stays until that
 * one is deleted. Call it after the survey was deleted.
 */
export async function deletePrivateSegment(
  db: Database,
  workspaceId: string,
  surveyId: string,
): Promise<void> {
  await db
    .deleteFrom('segments')
    .where('workspaceId', '=', workspaceId)
    .where('isPrivate', '=', 1)
    .where(({ not, exists, or, eb, selectFrom }) =>
      or([
        eb('title', '=', surveyId),
        not(exists(selectFrom('surveys').select('id').whereRef('surveys.id', '=', 'segments.title'))),
      ]),
    )
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('surveys').select('id').whereRef('surveys.segmentId', '=', 'segments.id'))),
    )
    .execute();
}

/** Finds the private segment of a survey, which has the survey's id as its title; null if there is none. */
export async function findPrivateSegment(
  db: Database,
  workspaceId: string,
  surveyId: string,
): Promise<Segment | null> {
  const row = await db
    .selectFrom('segments')
    .selectAll()
    .where('workspaceId', '=', workspaceId)
    .where('title', '=', surveyId)
    .where('isPrivate', '=', 1)
    .executeTakeFirst();
  return row === undefined ? null : toSegment(row);
}

export function toSegment(row: SegmentTable): Segment {
  return { ...row, isPrivate: row.isPrivate === 1, filters: JSON.parse(row.filters) };
}
