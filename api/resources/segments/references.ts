/** What is asked of the filters of a segment before they are stored. */
import type { Kysely } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import { compileFilters } from './filters.ts';
import { hasReferenceCycle } from './reference-cycles.ts';
import { listSegments, type Segment } from './store.ts';

/** All of a workspace, those of surveys included, when references are followed. */
export const ALL = { limit: 10_000, skip: 0 };

/** The segments that filters refer to. @throws ApiError invalid_fields when the filters make no sense */
export function referencesIn(filters: readonly unknown[]): readonly string[] {
  const compiled = compileFilters(filters);
  if ('issues' in compiled) throw invalidFields(compiled.issues);
  return compiled.references;
}

/** @throws ApiError invalid_fields unless all are of the workspace, and none leads back to the segment */
export async function checkReferences(
  trx: Kysely<Database>,
  segment: Segment,
  references: readonly string[],
): Promise<void> {
  if (references.length === 0) return;
  const others = (await listSegments(trx, [segment.workspaceId], ALL)).filter(({ id }) => id !== segment.id);
  const known = new Set([segment.id, ...others.map(({ id }) => id)]);
  const unknown = references.find((id) => !known.has(id));
  if (unknown !== undefined) {
    throw invalidFields({ filters: `The segment ${unknown.slice(0, 64)} does not exist in the workspace` });
  }
  if (hasReferenceCycle(segment.id, [...others, segment])) {
    throw invalidFields({ filters: 'These filters refer to a segment that refers back to this one' });
  }
}
