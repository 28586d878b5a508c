/** Segments: groups of contacts that surveys are shown to. Every app survey has one, if only a private one for all. */
import type { Kysely, Selectable } from 'kysely';
import type { Database, SegmentTable, Timestamp } from '#api/db/schema.ts';

export interface Segment {
  readonly id: string;
  readonly workspaceId: string;
  readonly title: string;
  readonly description: string | null;
  /** Belongs to one survey and goes with it. */
  readonly isPrivate: boolean;
  readonly filters: readonly unknown[];
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

export async function findSegment(db: Kysely<Database>, id: string): Promise<Segment | null> {
  const row = await db.selectFrom('segments').selectAll().where('id', '=', id).executeTakeFirst();
  return row === undefined ? null : toSegment(row);
}

export async function insertSegment(db: Kysely<Database>, segment: Segment): Promise<void> {
  await db
    .insertInto('segments')
    .values({
      ...segment,
      isPrivate: segment.isPrivate ? 1 : 0,
      filters: JSON.stringify(segment.filters),
    })
    .execute();
}

/** Deletes the private segment that is titled with the survey's id; a shared one stays. */
export async function deletePrivateSegment(
  db: Kysely<Database>,
  workspaceId: string,
  surveyId: string,
): Promise<void> {
  await db
    .deleteFrom('segments')
    .where('workspaceId', '=', workspaceId)
    .where('title', '=', surveyId)
    .where('isPrivate', '=', 1)
    .execute();
}

/** The private segment of a survey, titled with its id; null when it has none. */
export async function findPrivateSegment(
  db: Kysely<Database>,
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

export function toSegment(row: Selectable<SegmentTable>): Segment {
  return { ...row, isPrivate: row.isPrivate === 1, filters: JSON.parse(row.filters) };
}
