/** Finds paths that a policy limits, and spellings of them in other case, which no route matches. */
import { createMatcher } from '#gateway/policy/match.ts';
import type { Policy, PolicySet } from '#gateway/policy/policy.ts';

export interface Spelling {
  readonly policy: string;
  readonly path: string;
  readonly other: string;
}

/** Maximum number of spellings. Each takes two requests of `floodgate doctor`. */
const SPELLINGS_MAX = 16;

export function spellingsOf(set: PolicySet): Spelling[] {
  const match = createMatcher(set);
  const byPath = new Map<string, Spelling>();
  for (const policy of set.policies) {
    const path = pathOf(policy, (text) => text);
    const other = pathOf(policy, otherLetters);
    if (path === other || byPath.has(path) || byPath.size >= SPELLINGS_MAX) continue;
    const [method = 'GET'] = policy.route.methods ?? [];
    const found = match(method, other);
    if (found.ok && found.cover?.policies.includes(policy) !== true)
      byPath.set(path, { policy: policy.name, path, other });
  }
  return [...byPath.values()];
}

function pathOf({ route }: Policy, spell: (literal: string) => string): string {
  const parts = route.segments.flatMap((segment) => {
    if (segment.kind === 'rest') return [];
    return [segment.kind === 'literal' ? encodeURIComponent(spell(segment.text)) : 'doctor'];
  });
  return `/${parts.join('/')}`;
}

function otherLetters(text: string): string {
  const upper = text.toUpperCase();
  return upper === text ? text.toLowerCase() : upper;
}
