/**
 * Finds the segments of a contact. Pure.
 *
 * A segment that cannot be decided has no members: its filters are invalid, or it depends on itself. That is the safe
 * side, because a survey is shown to the members of its segment.
 */
import type { Condition } from './conditions.ts';
import type { ContactProfile } from './contact-profile.ts';
import { compileFilters } from './filters.ts';

/** Segments may refer to each other. A longer chain of references is not decided, so that it needs no deep stack. */
const CHAIN_MAX = 500;

export interface EvaluatedSegment {
  readonly id: string;
  readonly filters: unknown;
}

/** The conditions of the segments whose filters are valid, in the order in which the segments were given. */
export type CompiledSegments = ReadonlyMap<string, Condition>;

export function compileSegments(segments: readonly EvaluatedSegment[]): CompiledSegments {
  return new Map(
    segments.flatMap(({ id, filters }) => {
      const compiled = compileFilters(filters);
      return 'issues' in compiled ? [] : [[id, compiled.condition]];
    }),
  );
}

/** @returns the ids of the contact's segments, in the order of the segments */
export function segmentsOf(segments: CompiledSegments, profile: ContactProfile): readonly string[] {
  const known = new Map<string, boolean | null>();
  const asked = new Set<string>();
  const isIn = (id: string): boolean | null => {
    const decided = known.get(id);
    if (decided !== undefined) return decided;
    const condition = segments.get(id);
    if (condition === undefined) return null;
    if (asked.has(id) || asked.size >= CHAIN_MAX) {
      // Nothing in this chain can be decided.
      for (const one of asked) known.set(one, null);
      return null;
    }
    asked.add(id);
    const result = condition(profile, isIn);
    asked.delete(id);
    if (!known.has(id)) known.set(id, result);
    return known.get(id) ?? null;
  };
  return [...segments.keys()].filter((id) => isIn(id) === true);
}
