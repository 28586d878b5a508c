/** Checks the filters of a segment before they are stored. */
import { sql } from 'kysely';
import type { Database } from '#api/db/schema.ts';
import { invalidFields } from '#api/errors.ts';
import type { EvaluatedSegment } from './evaluate.ts';
import { compileFilters } from './filters.ts';
import { eachSegment, type Segment } from './store.ts';

/**
 * Maximum size as JSON. Requests of users, which need no credentials, evaluate every segment of a workspace, so their
 * total is bounded.
 */
const SEGMENT_BYTES_MAX = 65_536;
const WORKSPACE_BYTES_MAX = 1_048_576;

/**
 * Returns the segments that filters refer to.
 *
 * @throws ApiError invalid_fields when the filters are invalid or too large
 */
export function referencesIn(filters: readonly unknown[]): readonly string[] {
  if (bytesOf(filters) > SEGMENT_BYTES_MAX) {
    throw invalidFields({ filters: 'must not take more than 64 KiB as JSON' });
  }
  const compiled = compileFilters(filters);
  if ('issues' in compiled) throw invalidFields(compiled.issues);
  return compiled.references;
}

/**
 * Checks filters before they are stored, together with the other segments of the workspace.
 *
 * @throws ApiError invalid_fields if the total is too large, unless this change makes it smaller; if a reference is
 * outside the workspace, or leads back to the segment
 */
export async function checkFilters(
  trx: Database,
  segment: Segment,
  references: readonly string[],
): Promise<void> {
  await checkTotal(trx, segment);
  if (references.length === 0) return;
  const others: { readonly id: string; readonly filters: unknown }[] = [];
  for await (const other of eachSegment(trx, segment.workspaceId)) {
    if (other.id !== segment.id) others.push(other);
  }
  const known = new Set([segment.id, ...others.map(({ id }) => id)]);
  const unknown = references.find((id) => !known.has(id));
  if (unknown !== undefined) {
    throw invalidFields({ filters: `The segment ${unknown.slice(0, 64)} does not exist in the workspace` });
  }
  if (hasReferenceCycle(segment.id, [...others, segment])) {
    throw invalidFields({ filters: 'These filters refer to a segment that refers back to this one' });
  }
}

async function checkTotal(trx: Database, { id, workspaceId, filters }: Segment): Promise<void> {
  const bytes = bytesOf(filters);
  const stored = sql<string | number | null>`sum(octet_length("filters"))`;
  const ofWorkspace = trx.selectFrom('segments').where('workspaceId', '=', workspaceId);
  const others = await ofWorkspace.where('id', '!=', id).select(stored.as('bytes')).executeTakeFirst();
  if (Number(others?.bytes ?? 0) + bytes <= WORKSPACE_BYTES_MAX) return;
  const own = await ofWorkspace.where('id', '=', id).select(stored.as('bytes')).executeTakeFirst();
  if (bytes <= Number(own?.bytes ?? 0)) return;
  throw invalidFields({
    filters: 'The filters of all segments of a workspace must not take more than 1 MiB as JSON',
  });
}

function bytesOf(filters: readonly unknown[]): number {
  return Buffer.byteLength(JSON.stringify(filters));
}

/** @param segments all of the workspace, including the changed one with its new filters */
export function hasReferenceCycle(id: string, segments: readonly EvaluatedSegment[]): boolean {
  const filtersOf = new Map(segments.map((segment) => [segment.id, segment.filters]));
  const seen = new Set<string>();
  const pending = [...referencesOf(filtersOf.get(id))];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next === id) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    pending.push(...referencesOf(filtersOf.get(next)));
  }
  return false;
}

/** @returns none for invalid filters, or for a segment that does not exist */
export function referencesOf(filters: unknown): readonly string[] {
  const compiled = compileFilters(filters ?? []);
  return 'issues' in compiled ? [] : compiled.references;
}
