/**
 * Leaves out the malformed parts of a policy file, so that mistakes in the other parts can be reported in the same run.
 * The result is used only to find mistakes. List entries keep their index: a removed entry leaves a hole.
 */
import type { Path } from '#gateway/policy/problems.ts';
import type { PolicyFile } from './schema.ts';

/** Replaces a malformed identifier. It causes no further mistakes in any combination. */
const ANY_IDENTIFIER: PolicyFile['identifiers'][string] = { source: [{ header: 'x-any' }] };

/** Overrides may name plans, although `plan` has a mistake, or the identifier of the tokens that name them. */
const ANY_PLAN: NonNullable<PolicyFile['plan']> = { header: 'x-any' };

export function soundParts(value: unknown, broken: readonly Path[]): PolicyFile | null {
  const isSound = (...path: Path): boolean =>
    !broken.some((place) => path.every((step, i) => i >= place.length || step === place[i]));
  if (!isRecord(value) || !isRecord(value.identifiers) || !Array.isArray(value.policies)) return null;
  if (Object.keys(value.identifiers).length === 0) return null;
  const parts = Object.entries(value).flatMap(([key, part]) => {
    if (!Array.isArray(part)) return isSound(key) ? [[key, part]] : [];
    const kept: unknown[] = [];
    for (const [i, entry] of part.entries()) if (isSound(key, i)) kept[i] = entry;
    return [[key, kept]];
  });
  // The tests may name policies that are left out.
  const { plan: _, tests: __, ...others } = Object.fromEntries(parts) as PolicyFile;
  const identifiers = Object.fromEntries(
    Object.entries(value.identifiers as PolicyFile['identifiers']).map(([name, identifier]) => [
      name,
      isSound('identifiers', name) ? identifier : ANY_IDENTIFIER,
    ]),
  );
  const named = value.plan === undefined ? {} : { plan: ANY_PLAN };
  return { ...others, identifiers, ...named };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
