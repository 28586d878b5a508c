/** Explains a refusal that is not stored by its id alone (decision-ids.ts), or also by its line in the access log. */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { type RefusalKind, readDecisionId } from '#gateway/reply/decision-ids.ts';
import { isoTime } from '#shared/clock.ts';
import { isWhole, type PartialRecord } from './decision-record.ts';
import { type DecisionText, textOf } from './decision-text.ts';
import { namesBesidePolicies } from './refusal.ts';

/** The record of a refusal of which only the id, the time and the kind are known. */
function unknownRecord(known: Pick<PartialRecord, 'id' | 'at' | 'decision'>): PartialRecord {
  return {
    ...known,
    method: null,
    path: null,
    policy: null,
    line: null,
    file: null,
    policyVersion: null,
    violated: null,
    limit: null,
    used: null,
    cost: null,
    windowSeconds: null,
    algorithm: null,
    endsAt: null,
    identity: null,
    identifier: null,
    isUnproven: null,
    addressFrom: null,
    decidedBy: null,
    fromMemory: null,
    replica: null,
  };
}

interface Names {
  readonly policies: PolicySet;
  /** Names of the processes that run now. */
  readonly replicas: readonly string[];
}

/** @returns null if the id was not made with this salt */
export function recordOfId(id: string, salt: string, { policies, replicas }: Names): PartialRecord | null {
  const read = readDecisionId(id, salt);
  if (read === null) return null;
  const { at, decision, isUnproven } = read;
  const record = { ...unknownRecord({ id, at: isoTime(at), decision }), isUnproven };
  const replica = replicas.find(read.isOfReplica) ?? null;
  const policy = policies.policies.find(({ name }) => read.isOfPolicy(name));
  if (policy === undefined) {
    const buckets = policies.policies.map(({ bucket }) => bucket);
    const name = namesBesidePolicies(buckets).find(read.isOfPolicy) ?? null;
    return { ...record, replica, policy: name };
  }
  const { name, line, algorithm, windowSeconds, identifier, overrides, capacity } = policy;
  const named = { ...record, replica, policy: name, line, file: policies.file, identifier: identifier.name };
  if (!read.isOfVersion(policies.version)) return named;
  const limit = overrides === null ? capacity : null;
  return { ...named, policyVersion: policies.version, algorithm, windowSeconds, limit };
}

/** Kinds of refusals that the access log names otherwise. */
const LOGGED_KINDS: Readonly<Record<string, RefusalKind>> = {
  banned: 'banned',
  unavailable: 'unavailable',
  // The policies had admitted the request.
  allow: 'busy',
  uncovered: 'busy',
};

/**
 * @param line of the access log
 * @param told the record that the gateway has, or that the id tells; null if it is unknown
 */
export function recordOfLine(
  id: string,
  line: Readonly<Record<string, unknown>>,
  told: PartialRecord | null,
): PartialRecord {
  if (told !== null && isWhole(told)) return told;
  const { time, method, path, policy, decision, unproven, identities, address } = line;
  const known =
    told ??
    unknownRecord({
      id,
      at: textIn(time) ?? '',
      decision: LOGGED_KINDS[String(decision)] ?? 'deny',
    });
  const isUnproven = known.isUnproven ?? (Array.isArray(unproven) && unproven.length > 0);
  const digests: Readonly<Record<string, unknown>> =
    typeof identities === 'object' && identities !== null ? { ...identities } : {};
  // If several were counted and the policy is unknown, nobody knows whose limit it was.
  const [only, ...others] = Object.values(digests);
  const counted = known.identifier !== null ? digests[known.identifier] : others.length === 0 ? only : null;
  return {
    ...known,
    at: textIn(time) ?? known.at,
    method: textIn(method),
    path: textIn(path),
    policy: known.policy ?? textIn(policy),
    isUnproven,
    identity: textIn(isUnproven ? address : counted),
  };
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** @param address of the client; null if unknown */
export function explained(record: PartialRecord, address: string | null): DecisionText {
  return isWhole(record) ? textOf(record, address) : textOfPartial(record);
}

function textOfPartial(record: PartialRecord): DecisionText {
  const { id, at, method, path, line, file, policyVersion, identity, replica } = record;
  const isInFile = line !== null && line > 0;
  return {
    what: `${method === null ? 'A request' : `${method} ${path}`} was refused at ${at}.`,
    reasons: [
      reasonOf(record),
      ...(isInFile && policyVersion === null ? ['The policy file has changed since.'] : []),
    ],
    facts: [
      ...(isInFile ? [['Line', `${file}:${line}`] as const] : []),
      ...(identity === null ? [] : [['Counted', identity] as const]),
      ['Decided', replica === null ? 'in a process that is not running now' : `in ${replica}`],
    ],
    advice:
      method === null
        ? `The id says only this, and the rest is not stored. floodgate why ${id} --log FILE finds it in the access log.`
        : 'The usage is not stored. floodgate inspect shows what the client has used now.',
  };
}

function reasonOf({ decision, policy, isUnproven, limit, windowSeconds }: PartialRecord): string {
  const name = policy === null ? 'a policy that is no longer in the file' : `policy ${policy}`;
  switch (decision) {
    case 'deny': {
      const by = isUnproven === true ? ", by the client's address with unproven keys" : '';
      const allows = limit !== null && windowSeconds ? `: it allows ${limit} in ${windowSeconds} s` : '';
      return `The limit of ${name} was reached${by}${allows}.`;
    }
    case 'unavailable':
      return `The store was unavailable, and ${name} has onStoreFailure: deny. The client got 503.`;
    case 'listed':
      return `The list deny of the policy file refused the request (${policy}).`;
    case 'banned':
      return `The client was banned (${policy ?? `by ${name}`}).`;
    case 'busy':
      return `A bound of the gateway was reached (${policy}).`;
    default:
      return decision satisfies never;
  }
}
