/** Segments: groups of contacts that surveys are shown to. */
import type { Database, Decoded, SegmentTable } from '#api/db/schema.ts';
import { type Owned, workspaceTable } from '#api/resources/workspaces/table.ts';

export type Segment = Decoded<SegmentTable, { filters: readonly unknown[] }>;

export const segments = workspaceTable<Segment>('segments', {
  json: ['filters'],
  // The title is unique in its workspace. This is the order of the index.
  order: ['workspaceId', 'title'],
  // Requests of users, which need no credentials, evaluate them all.
  limit: { max: 500, noun: 'segments', size: { of: 'filters', bytes: 524_288 } },
});

interface OfSegment extends Owned {
  readonly segment: Segment | null;
  readonly content: { readonly type: string };
}

/**
 * Returns the segment of a survey as clients see it. SDKs show a survey only to members of its segment, so one for
 * everybody has a segment too. It is not stored, and has the id of its survey.
 */
export function shownSegment({ segment, content, ...survey }: OfSegment) {
  if (segment !== null) return { ...segment, isPrivate: false };
  if (content.type === 'link') return null;
  const { id, workspaceId, createdAt, updatedAt } = survey;
  const owned = { id, workspaceId, createdAt, updatedAt };
  return { ...owned, title: id, description: null, isPrivate: true, filters: [] };
}

/** Number of newest surveys for everybody that are read. SDKs get 30. */
const OPEN_MAX = 1_000;

/** Lists the newest surveys for everybody. */
export async function openSurveys(db: Database, workspaceId: string): Promise<readonly string[]> {
  const rows = await db
    .selectFrom('surveys')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('type', '!=', 'link')
    .where('status', '!=', 'completed')
    .where('segmentId', 'is', null)
    .orderBy('createdAt', 'desc')
    .limit(OPEN_MAX)
    .execute();
  return rows.map(({ id }) => id);
}
