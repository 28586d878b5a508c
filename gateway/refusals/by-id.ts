/** Explains a refusal that is not stored, by its id alone (decision-ids.ts). */
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { isoTime } from '#shared/clock.ts';
import { readDecisionId } from './decision-ids.ts';
import { isWhole, type PartialRecord } from './decision-record.ts';
import { type DecisionText, textOf } from './decision-text.ts';
import { countedBy, namesBesidePolicies, reasonOf } from './reasons.ts';

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
  const { name, line, algorithm, windowSeconds, overrides, capacity } = policy;
  const named = {
    ...record,
    replica,
    policy: name,
    line,
    file: policies.file,
    identifier: countedBy(policy),
  };
  if (!read.isOfVersion(policies.version)) return named;
  const limit = overrides === null ? capacity : null;
  return { ...named, policyVersion: policies.version, algorithm, windowSeconds, limit };
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
      reasonOf(record).briefly(record),
      ...(isInFile && policyVersion === null ? ['The policy file has changed since.'] : []),
    ],
    facts: [
      ...(isInFile ? [['Line', `${file}:${line}`] as const] : []),
      ['Decided', replica === null ? `in a process ${unknown}` : `in ${replica}`],
    ],
    advice: `The id says only this, ${rest}. floodgate why ${id} --log FILE finds it in the access log.`,
  };
}
