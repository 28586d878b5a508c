/** Reads and compiles the segments of a workspace once, instead of for each request of a user. */

import type { StateCache } from '#api/cache/state-cache.ts';
import type { Kept, WorkspaceCache } from '#api/cache/workspace-cache.ts';
import type { Database } from '#api/db/schema.ts';
import { type CompiledSegments, compileSegments } from './evaluate.ts';
import { eachSegment, type StoredFilters } from './store.ts';

interface KeptSegments extends Kept {
  readonly compiled: CompiledSegments;
}

export type SegmentCache = WorkspaceCache<KeptSegments>;

/** Size of the filters in the database, ten times the maximum of a workspace. Compiled filters take more. */
const BYTES_MAX = 10_485_760;

export function createSegmentCache(states: StateCache): SegmentCache {
  return states.beside({ bytesMax: BYTES_MAX });
}

export async function readCompiledSegments(db: Database, workspaceId: string): Promise<KeptSegments> {
  const segments: StoredFilters[] = [];
  let bytes = 0;
  for await (const segment of eachSegment(db, workspaceId)) {
    segments.push(segment);
    bytes += segment.bytes;
  }
  return { compiled: compileSegments(segments), bytes, validUntil: Number.POSITIVE_INFINITY };
}
