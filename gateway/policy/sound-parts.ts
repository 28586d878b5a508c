/**
 * A policy file without its parts of a wrong shape, so that the mistakes in all others are told at the same time. Nothing
 * is made of it but those mistakes. Parts keep their places: what is left out of a list leaves a hole.
 */
import type { Path } from './problems.ts';
import type { PolicyFile } from './schema.ts';

type Row = PolicyFile['policies'][number];

/** Counts somebody, like the identifier that has a mistake, and cannot be mistaken in any combination. */
const ANY_IDENTIFIER: PolicyFile['identifiers'][string] = { source: [{ header: 'x-any' }] };

/**
 * @param value what the file says
 * @param broken where it has a wrong shape
 * @returns null where too little is left
 */
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
      // Names that no file may have: they meet no other.
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
  const listed = <T>(key: string, list: readonly T[] | undefined): T[] => {
    const kept: T[] = [];
    if (Array.isArray(list) && isWhole(key))
      for (const [i, entry] of list.entries()) if (isSound(key, i)) kept[i] = entry;
    return kept;
  };
  return {
    version: 1,
    identifiers,
    policies,
    ignoreCase: file.ignoreCase === true,
    exclude: listed('exclude', file.exclude),
    allow: listed('allow', file.allow),
    deny: listed('deny', file.deny),
    ...(file.plan === undefined ? {} : { plan: isSound('plan') ? file.plan : { header: 'x-any' } }),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
