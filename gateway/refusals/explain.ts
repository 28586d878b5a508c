/**
 * Explains a refusal to people: the reason, who was counted, and how to change it. If it is not stored, its id alone
 * says a part of that (decision-ids.ts).
 */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { isoTime } from '#shared/clock.ts';
import { readDecisionId } from './decision-ids.ts';
import { type DecisionRecord, isWhole, type PartialRecord } from './decision-record.ts';
import { namesBesidePolicies, reasonOfRecord } from './reasons.ts';
import { countedBy } from './recorded.ts';

interface Names {
  readonly policies: PolicySet;
  /** Names of the processes that run now. */
  readonly replicas: readonly string[];
}

/** @returns null if the id was not made with this salt */
export function recordOfId(
  id: string,
  salt: string,
  { policies: set, replicas }: Names,
): PartialRecord | null {
  const read = readDecisionId(id, salt);
  if (read === null) return null;
  const { at, decision, isUnproven } = read;
  const policy = set.policies.find(({ name }) => read.isOfPolicy(name)) ?? null;
  const beside = namesBesidePolicies(set.policies.map(({ bucket }) => bucket)).find(read.isOfPolicy);
  /** The policy, if it is as it was then. */
  const same = read.isOfVersion(set.version) ? policy : null;
  return {
    id,
    at: isoTime(at),
    decision,
    method: null,
    path: null,
    policy: policy?.name ?? beside ?? null,
    line: policy?.line ?? null,
    file: policy === null ? null : set.file,
    policyVersion: same === null ? null : set.version,
    violated: null,
    limit: same?.overrides === null ? same.capacity : null,
    used: null,
    cost: null,
    windowSeconds: same?.windowSeconds ?? null,
    algorithm: same?.algorithm ?? null,
    endsAt: null,
    identity: null,
    identifier: policy === null ? null : countedBy(policy),
    isUnproven,
    addressFrom: null,
    decidedBy: null,
    fromMemory: null,
    replica: replicas.find(read.isOfReplica) ?? null,
  };
}

export interface DecisionText {
  /** The refused request, and the time. */
  readonly what: string;
  readonly reasons: readonly string[];
  /** Name and value of a row in the description. */
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly advice: string;
}

/** @param address of the client; null if unknown */
export function textOf(record: DecisionRecord, address: string | null = null): DecisionText {
  const { at, method, path, policy, file, line, policyVersion, violated, endsAt } = record;
  const reason = reasonOfRecord(record);
  const others = violated.filter((name) => name !== policy);
  return {
    what: `${method === '' ? 'A connection' : `${method} ${path}`} was refused at ${at}.`,
    reasons: [
      ...reason.why(record),
      ...(others.length === 0 ? [] : [`Also exhausted: ${others.join(', ')}.`]),
    ],
    facts: [
      ...(line === 0 ? [] : [['Line', `${file}:${line}, version ${policyVersion}`] as const]),
      ['Counted', `${record.identifier} ${record.identity}, address from ${record.addressFrom}`],
      ...(address === null ? [] : [['Address', address] as const]),
      ['Decided', `by ${decidedBy(record)} in ${record.replica}`],
      ['Retry at', endsAt],
    ],
    advice: reason.advice(record),
  };
}

function decidedBy({ decidedBy, fromMemory }: DecisionRecord): string {
  const by = decidedBy === 'store' ? 'the store' : 'the process alone';
  return fromMemory ? `${by}, remembered,` : by;
}

/**
 * @param address of the client; null if unknown
 * @param isStoreAway whether the store, which may have the rest, did not answer
 */
export function explained(record: PartialRecord, address: string | null, isStoreAway: boolean): DecisionText {
  return isWhole(record) ? textOf(record, address) : textOfPartial(record, isStoreAway);
}

function textOfPartial(record: PartialRecord, isStoreAway: boolean): DecisionText {
  const { id, at, line, file, policyVersion, replica } = record;
  const unknown = isStoreAway ? 'that is not known while the store is away' : 'that is not running now';
  const rest = isStoreAway ? 'while the store is away; ask again later' : 'and the rest is not stored';
  const isInFile = line !== null && line > 0;
  return {
    what: `A request was refused at ${at}.`,
    reasons: [
      ...reasonOfRecord(record).why(record),
      ...(isInFile && policyVersion === null ? ['The policy file has changed since.'] : []),
    ],
    facts: [
      ...(isInFile ? [['Line', `${file}:${line}`] as const] : []),
      ['Decided', replica === null ? `in a process ${unknown}` : `in ${replica}`],
    ],
    advice: `The id says only this, ${rest}. floodgate why ${id} --log FILE finds it in the access log.`,
  };
}
