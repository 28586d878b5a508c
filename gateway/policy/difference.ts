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
  if (before.planHeader !== after.planHeader) {
    const effect = 'plans are named in another header';
    changes.push({ kind: 'plan', policy: null, from: before.planHeader, to: after.planHeader, effect });
  }
  const [from, to] = [plansText(before), plansText(after)];
  if (from !== to) {
    const effect = 'clients that the old or new file names may have another plan';
    changes.push({ kind: 'plans', policy: null, from, to, effect });
  }
  if (before.ignoreCase !== after.ignoreCase) {
    const effect = after.ignoreCase
      ? 'policies match paths without regard to case'
      : 'policies match paths only in the same case';
    const [from, to] = [String(before.ignoreCase), String(after.ignoreCase)];
    changes.push({ kind: 'ignore-case', policy: null, from, to, effect });
  }
  changes.push(...exclusions(before, after), ...listChanges(before, after));
  return changes;
}

function exclusions(before: PolicySet, after: PolicySet): Change[] {
  const old = new Set(before.exclude.map(({ text }) => text));
  const now = new Set(after.exclude.map(({ text }) => text));
  return [
    ...[...now.difference(old)].map(
      (text): Change => ({
        kind: 'exclude-added',
        policy: null,
        from: null,
        to: text,
        effect: `no policy applies to ${text} any more`,
      }),
    ),
    ...[...old.difference(now)].map(
      (text): Change => ({
        kind: 'exclude-removed',
        policy: null,
        from: text,
        to: null,
        effect: `policies apply to ${text} again`,
      }),
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
    changes.push({ kind: 'list-added', policy: null, from: null, to: text, effect });
  }
  for (const [text, { names }] of old) {
    if (now.has(text)) continue;
    const effect =
      names === 'route' ? 'this route is open again' : 'these clients are treated like all others';
    changes.push({ kind: 'list-removed', policy: null, from: text, to: null, effect });
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
