/** Segments: groups of contacts that surveys are shown to. */
import type { StateCache } from '#api/cache/state-cache.ts';
import type { Kept, WorkspaceCache } from '#api/cache/workspace-cache.ts';
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

interface KeptSegments extends Kept {
  readonly stored: readonly Segment[];
  /** Ids of the surveys for everybody. */
  readonly open: readonly string[];
}

export type SegmentCache = WorkspaceCache<KeptSegments>;

/** Size of the filters in the database. Parsed filters take more. */
const BYTES_MAX = 10_485_760;
/** Number of newest surveys for everybody that are read. SDKs get 30. */
const OPEN_MAX = 1_000;

export function createSegmentCache(states: StateCache): SegmentCache {
  return states.beside({ bytesMax: BYTES_MAX });
}

export async function readSegments(db: Database, workspaceId: string): Promise<KeptSegments> {
  const stored = await segments.listAll(db, workspaceId);
  const open = await db
    .selectFrom('surveys')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('type', '!=', 'link')
    .where('status', '!=', 'completed')
    .where('segmentId', 'is', null)
    .orderBy('createdAt', 'desc')
    .limit(OPEN_MAX)
    .execute();
  const bytes = Buffer.byteLength(JSON.stringify([stored, open]));
  return { stored, open: open.map(({ id }) => id), bytes, validUntil: Number.POSITIVE_INFINITY };
}
