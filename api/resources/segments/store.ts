/**
 * Segments: groups of contacts that surveys are shown to. Every app survey has one; a survey for everybody has a
 * private one without filters.
 */
import { sql } from 'kysely';
import type { Database, Decoded, SegmentTable } from '#api/db/schema.ts';
import { workspaceTable } from '#api/resources/workspaces/table.ts';

export type Segment = Decoded<SegmentTable, { isPrivate: boolean; filters: readonly unknown[] }>;

export const segments = workspaceTable<Segment>('segments', {
  flags: ['isPrivate'],
  json: ['filters'],
  // The title is unique in its workspace. This is the order of the index.
  order: ['workspaceId', 'title'],
  // Private segments belong to one survey.
  limit: { max: 500, noun: 'segments', counted: sql`"isPrivate" = 0` },
});

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
  return row === undefined ? null : segments.decode(row);
}
