/** Explains a refusal to people: the reason, who was counted, and how to change it. */
import type { DecisionRecord } from './decision-record.ts';
import { reasonOfRecord } from './reasons.ts';

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
