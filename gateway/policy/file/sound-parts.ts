/**
 * Removes the malformed parts from a policy file, so that mistakes in the other parts can be reported in the same run.
 * The result is used only to find mistakes. List entries keep their index: a removed entry leaves a hole.
 */
import type { Path } from '#gateway/policy/problems.ts';
import type { PolicyFile } from './schema.ts';

type Row = PolicyFile['policies'][number];

/** Replaces a malformed identifier. It causes no further mistakes in any combination. */
const ANY_IDENTIFIER: PolicyFile['identifiers'][string] = { source: [{ header: 'x-any' }] };

export function soundParts(value: unknown, broken: readonly Path[]): PolicyFile | null {
  const isSound = (...path: Path): boolean =>
    !broken.some((place) => path.every((step, i) => i >= place.length || step === place[i]));
  const isWhole = (...path: Path): boolean => !broken.some((place) => place.join() === path.join());
  if (!isRecord(value) || !isRecord(value.identifiers) || !Array.isArray(value.policies)) return null;
  const file = value as unknown as PolicyFile;
  const identifiers = Object.fromEntries(
    Object.entries(file.identifiers).map(([name, identifier]) => [
      name,
      isSound('identifiers', name) ? identifier : ANY_IDENTIFIER,
    ]),
  );
  const [someIdentifier] = Object.keys(identifiers);
  if (someIdentifier === undefined) return null;

  const policies: Row[] = [];
  for (const [i, row] of file.policies.entries()) {
    const here = ['policies', i] as const;
    if (isSound(...here)) policies[i] = row;
    else if (isWhole(...here) && isRecord(row) && isSound(...here, 'route') && row.route !== undefined) {
      const has = (key: 'name' | 'identifier'): boolean => isSound(...here, key) && row[key] !== undefined;
      // A name with a space is not allowed in a file, so it cannot collide with another.
      policies[i] = {
        name: has('name') ? row.name : `row ${i}`,
        route: row.route,
        identifier: has('identifier') ? row.identifier : someIdentifier,
        bucket: `row ${i}`,
        limit: 1,
        window: '1m',
      };
    }
  }
  const others = Object.entries(value).flatMap(([key, part]) => {
    if (!Array.isArray(part)) return isSound(key) ? [[key, part]] : [];
    const kept: unknown[] = [];
    if (isWhole(key)) for (const [i, entry] of part.entries()) if (isSound(key, i)) kept[i] = entry;
    return [[key, kept]];
  });
  const { plan, tests: _, ...whole } = Object.fromEntries(others) as Partial<PolicyFile>;
  // Overrides may name plans, although `plan` has a mistake, or the identifier of the tokens that name them.
  const isPlanSound =
    plan !== undefined && Object.keys(identifiers).every((name) => isSound('identifiers', name));
  const named = value.plan === undefined ? {} : { plan: isPlanSound ? plan : { header: 'x-any' } };
  return { ...whole, ...named, version: 1, identifiers, policies };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
