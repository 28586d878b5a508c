/**
 * Finds the actions after which contacts may be in other segments. SDKs request the segments of their user every half
 * hour. After one of these actions they request them at once, so that "has completed survey X" shows the next survey in
 * the same visit.
 */
import type { Database } from '#api/db/schema.ts';
import type { Interaction } from './conditions.ts';
import { compileFilters } from './filters.ts';
import { type Segment, segments } from './store.ts';

/** The surveys in which each action counts; null for any survey. */
export type Interactions = Readonly<Record<Interaction['kind'], ReadonlySet<string> | null>>;

/** Returns the segments with all that they refer to, directly or indirectly. Makes one query for each step. */
export async function withReferred(db: Database, first: readonly Segment[]): Promise<readonly Referred[]> {
  const all: Referred[] = [];
  const seen = new Set(first.map(({ id }) => id));
  for (let next = first; next.length > 0; ) {
    const referred = new Set<string>();
    for (const segment of next) {
      const compiled = compileFilters(segment.filters);
      // A segment that cannot be decided has no members, whatever contacts do.
      const { references, interactions } = 'issues' in compiled ? nothing : compiled;
      all.push({ ...segment, interactions });
      for (const id of references) {
        if (!seen.has(id)) referred.add(id);
        seen.add(id);
      }
    }
    next = await segments.findAll(db, [...referred]);
  }
  return all;
}

interface Referred extends Segment {
  readonly interactions: readonly Interaction[];
}

const nothing = { references: [], interactions: [] };

/** @param segments that decide who sees a survey, `withReferred` */
export function interactionsOf(segments: readonly Referred[]): Interactions {
  const found = segments.flatMap(({ interactions }) => interactions);
  return {
    display: surveysIn(found, 'display'),
    response: surveysIn(found, 'response'),
    finish: surveysIn(found, 'finish'),
  };
}

function surveysIn(found: readonly Interaction[], kind: Interaction['kind']): ReadonlySet<string> | null {
  const surveyIds = new Set<string>();
  for (const interaction of found) {
    if (interaction.kind !== kind) continue;
    if (interaction.surveyIds === null) return null;
    for (const id of interaction.surveyIds) surveyIds.add(id);
  }
  return surveyIds;
}
