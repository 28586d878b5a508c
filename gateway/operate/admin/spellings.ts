/** Finds paths that a policy limits, other spellings of them that no route matches. */
import { createMatcher } from '#gateway/policy/match.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';

export interface Spelling {
  /** case: other letters. format: a suffix for the type of the reply, as Rails reads it. */
  readonly kind: 'case' | 'format';
  readonly policy: string;
  readonly path: string;
  readonly other: string;
}

/** Maximum number of paths. Each takes three requests of `floodgate doctor`. */
const PATHS_MAX = 16;

export function spellingsOf(set: PolicySet): Spelling[] {
  const match = createMatcher(set);
  const paths = new Set<string>();
  const spellings: Spelling[] = [];
  for (const policy of set.policies) {
    const path = pathOf(policy, (text) => text);
    const [method = 'GET'] = policy.route.methods ?? [];
    const add = (kind: Spelling['kind'], other: string): void => {
      const found = match(method, other);
      if (found.ok && found.cover?.policies.includes(policy) !== true)
        spellings.push({ kind, policy: policy.name, path, other });
    };
    if (path === '/' || paths.has(path) || paths.size === PATHS_MAX) continue;
    paths.add(path);
    add('case', pathOf(policy, otherLetters));
    add('format', `${path}.json`);
  }
  return spellings;
}

function pathOf({ route }: LoadedPolicy, spell: (literal: string) => string): string {
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
