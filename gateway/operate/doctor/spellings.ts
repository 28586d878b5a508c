/** Finds paths that a policy limits, other spellings of them that no route matches, and places where it counts a key. */
import { type CredentialSource, partsOf } from '#gateway/identity/identifier.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';

export interface Spelling {
  /** case: other letters. format: a suffix for the type of the reply, as Rails reads it. */
  readonly kind: 'case' | 'format';
  readonly policy: string;
  readonly path: string;
  readonly other: string;
}

/** A path where a policy counts keys that it distinguishes by case. */
export interface KeyPlace {
  readonly identifier: string;
  readonly path: string;
  readonly sources: readonly CredentialSource[];
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

/** Returns one path for each identifier, for requests with GET. */
export function keyPlacesOf({ policies }: PolicySet): KeyPlace[] {
  const places = new Map<string, KeyPlace>();
  for (const policy of policies) {
    if (policy.route.methods?.has('GET') === false) continue;
    for (const part of partsOf(policy.identifier)) {
      if (part.kind !== 'credential' || part.ignoresCase === true || places.has(part.name)) continue;
      const path = pathOf(policy, (text) => text);
      places.set(part.name, { identifier: part.name, path, sources: part.sources });
    }
  }
  return [...places.values()];
}

function pathOf({ route }: LoadedPolicy, spell: (literal: string) => string): string {
  const parts = route.segments.flatMap((segment) => {
    if (segment.kind === 'rest') return [];
    return [segment.kind === 'literal' ? encodeURIComponent(spell(segment.text)) : 'doctor'];
  });
  return `/${parts.join('/')}`;
}

export function otherLetters(text: string): string {
  const upper = text.toUpperCase();
  return upper === text ? text.toLowerCase() : upper;
}
