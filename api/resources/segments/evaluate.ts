/**
 * Finds the segments of a contact. Pure.
 *
 * Segments may refer to each other, so they are decided in the order of their references, each once, without
 * recursion. A segment that cannot be decided has no members: its filters are invalid, or it depends on references in
 * a cycle. That is the safe side, because a survey is shown to the members of its segment.
 */
import type { Compiled, Condition, InvalidFilter } from './conditions.ts';
import type { ContactProfile } from './contact-profile.ts';
import { compileFilters } from './filters.ts';

export interface EvaluatedSegment {
  readonly id: string;
  readonly filters: unknown;
}

/** Segments that can be decided, in the order of their references. */
export interface CompiledSegments {
  /** Ids in the order in which the segments were given. */
  readonly ids: readonly string[];
  readonly conditions: ReadonlyMap<string, Condition>;
}

export function compileSegments(segments: readonly EvaluatedSegment[]): CompiledSegments {
  const compiled = new Map(segments.map(({ id, filters }) => [id, compileFilters(filters)]));
  const { waiting, dependents, ready } = order(compiled);
  const conditions = new Map<string, Condition>();
  // Grows during the loop: deciding one segment may make others ready.
  for (const id of ready) {
    const segment = compiled.get(id);
    if (segment !== undefined && !('issues' in segment)) conditions.set(id, segment.condition);
    for (const dependent of dependents.get(id) ?? []) {
      const left = (waiting.get(dependent) ?? 1) - 1;
      waiting.set(dependent, left);
      if (left === 0) ready.push(dependent);
    }
  }
  return { ids: segments.map(({ id }) => id), conditions };
}

/** @returns the ids of the contact's segments, in the order of the segments */
export function segmentsOf(
  { ids, conditions }: CompiledSegments,
  profile: ContactProfile,
): readonly string[] {
  const membership = new Map<string, boolean>();
  const isIn = (id: string): boolean | null => membership.get(id) ?? null;
  for (const [id, condition] of conditions) membership.set(id, condition(profile, isIn));
  return ids.filter((id) => membership.get(id) === true);
}

/** Computes how many segments each one waits for, which ones wait for it, and which can be decided at once. */
function order(compiled: ReadonlyMap<string, Compiled | InvalidFilter>) {
  const waiting = new Map<string, number>();
  const dependents = new Map<string, string[]>();
  const ready: string[] = [];
  for (const [id, segment] of compiled) {
    // A reference to a missing segment does not count.
    const references = 'issues' in segment ? [] : segment.references.filter((other) => compiled.has(other));
    for (const other of references) {
      const known = dependents.get(other);
      if (known === undefined) dependents.set(other, [id]);
      else known.push(id);
    }
    if (references.length === 0) ready.push(id);
    else waiting.set(id, references.length);
  }
  return { waiting, dependents, ready };
}
