/**
 * Removes the malformed parts from a policy file, so that mistakes in the other parts can be reported in the same run.
 * The result is used only to find mistakes. List entries keep their index: a removed entry leaves a hole.
 */
import type { Path } from './problems.ts';
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
    ...(file.timezone !== undefined && isSound('timezone') ? { timezone: file.timezone } : {}),
    exclude: listed('exclude', file.exclude),
    allow: listed('allow', file.allow),
    deny: listed('deny', file.deny),
    ...(file.plans !== undefined && isSound('plans') ? { plans: file.plans } : {}),
    ...(file.replies !== undefined && isSound('replies') ? { replies: file.replies } : {}),
    ...(file.plan === undefined ? {} : { plan: isSound('plan') ? file.plan : { header: 'x-any' } }),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
