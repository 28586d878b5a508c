/** Lists what changes, and for which clients, when one policy file replaces another. Pure. */
import type { ListEntry } from './lists.ts';
import type { Policy, PolicySet } from './policy.ts';
import {
  AFRESH,
  type Change,
  changesOf,
  isSameButName,
  policyAdded,
  policyRemoved,
} from './policy-changes.ts';

export function differenceOf(before: PolicySet, after: PolicySet): Change[] {
  const changes: Change[] = [];
  const gone = new Map(before.policies.map((policy) => [policy.name, policy]));
  const added: Policy[] = [];
  for (const policy of after.policies) {
    const old = gone.get(policy.name);
    gone.delete(policy.name);
    if (old === undefined) added.push(policy);
    else changes.push(...changesOf(old, policy));
  }
  for (const policy of added) {
    const old = [...gone.values()].find((candidate) => isSameButName(candidate, policy));
    if (old === undefined) {
      changes.push(policyAdded(policy));
      continue;
    }
    gone.delete(old.name);
    changes.push({
      kind: 'policy-renamed',
      policy: policy.name,
      from: old.name,
      to: policy.name,
      effect:
        old.bucket === policy.bucket ? 'clients see another name' : `clients see another name; ${AFRESH}`,
    });
  }
  for (const old of gone.values()) changes.push(policyRemoved(old));
  return [
    ...changes,
    ...ofFile('plan', before.planHeader, after.planHeader, 'plans are named in another header'),
    ...ofFile(
      'plans',
      plansText(before),
      plansText(after),
      'clients that the old or new file names may have another plan',
    ),
    ...ofFile(
      'page',
      before.page?.version ?? null,
      after.page?.version ?? null,
      'browsers get another page when a request is refused',
    ),
    ...ofFile(
      'ignore-case',
      String(before.ignoreCase),
      String(after.ignoreCase),
      after.ignoreCase
        ? 'policies match paths without regard to case'
        : 'policies match paths only in the same case',
    ),
    ...ofFile(
      'protect',
      before.protect ?? 'off',
      after.protect ?? 'off',
      after.protect === 'on'
        ? 'fewer requests at once are admitted while the application replies slowly'
        : 'no request is refused because the application replies slowly',
    ),
    ...exclusions(before, after),
    ...listChanges(before, after),
  ];
}

/** Reports a change of the whole file, unless both values are equal. */
function ofFile(kind: Change['kind'], from: string | null, to: string | null, effect: string): Change[] {
  return from === to ? [] : [{ kind, policy: null, from, to, effect }];
}

function exclusions(before: PolicySet, after: PolicySet): Change[] {
  const old = new Set(before.exclude.map(({ text }) => text));
  const now = new Set(after.exclude.map(({ text }) => text));
  return [
    ...[...now.difference(old)].flatMap((text) =>
      ofFile('exclude-added', null, text, `no policy applies to ${text} any more`),
    ),
    ...[...old.difference(now)].flatMap((text) =>
      ofFile('exclude-removed', text, null, `policies apply to ${text} again`),
    ),
  ];
}

function listChanges(before: PolicySet, after: PolicySet): Change[] {
  const [old, now] = [entriesByText(before), entriesByText(after)];
  const changes: Change[] = [];
  for (const [text, { list, names }] of now) {
    if (old.has(text)) continue;
    const refused = names === 'route' ? 'everybody is refused on this route' : 'these clients are refused';
    const effect = list === 'allow' ? 'no policy counts these clients any more' : refused;
    changes.push(...ofFile('list-added', null, text, effect));
  }
  for (const [text, { names }] of old) {
    if (now.has(text)) continue;
    const effect =
      names === 'route' ? 'this route is open again' : 'these clients are treated like all others';
    changes.push(...ofFile('list-removed', text, null, effect));
  }
  return changes;
}

function entriesByText({ lists }: PolicySet): ReadonlyMap<string, ListEntry> {
  const entries = lists?.entries ?? [];
  return new Map(
    entries.map((entry) => {
      const status = entry.list === 'deny' && entry.status === 403 ? ' with 403' : '';
      return [`${entry.list} ${entry.text}${status}`, entry];
    }),
  );
}

function plansText({ plans }: PolicySet): string | null {
  return plans === null
    ? null
    : `${plans.size} ${plans.size === 1 ? 'client' : 'clients'}, version ${plans.version}`;
}
