/** Do the references of a segment lead back to it? Pure. */
import type { EvaluatedSegment } from './evaluate.ts';
import { compileFilters } from './filters.ts';

/** @param segments all of the workspace, the one in question as it is about to be */
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

/** Of filters that make no sense, or of a segment that is not there: none. */
export function referencesOf(filters: unknown): readonly string[] {
  const compiled = compileFilters(filters ?? []);
  return 'issues' in compiled ? [] : compiled.references;
}
