/** The words of a refusal by a limit, for its client and for operators. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type Allowed, allowanceOf, unitOf } from '#gateway/policy/allowance.ts';
import type { GroupWords } from '#gateway/policy/groups.ts';
import type { DecisionRecord, PartialRecord } from './decision-record.ts';

/** A violation of a policy, as its text needs it. */
type Violated = Allowed & { readonly canNeverPass: boolean };

/** @param first the violation with the longest wait; undefined if it is not known */
export function limitText(first: Violated | undefined): string {
  if (first === undefined) return 'Too many requests.';
  const { policy, capacity, canNeverPass } = first;
  if (canNeverPass)
    return `This request takes more of policy ${policy.name} than can ever be used at once, ${capacity}${unitOf(policy)}. It cannot pass: send less in one request.`;
  return `Too many requests: policy ${policy.name} allows ${allowanceOf(first, ' seconds')}. Wait for the seconds in Retry-After.`;
}

/** @param first the violation with the longest wait */
export function groupText({ heading, key }: GroupWords, first: Violated | undefined): string {
  if (first === undefined || first.canNeverPass) return limitText(first);
  return `${heading}: policy ${first.policy.name} allows ${key} together ${allowanceOf(first, ' seconds')}. Wait for the seconds in Retry-After.`;
}

export function groupWhy({ why }: GroupWords, record: DecisionRecord): string[] {
  const [reached = ''] = limitWhy(record);
  return [reached, why];
}

/** @returns such as `5 in 60 s`; null if the limit is not known */
export function allowedText({
  limit,
  algorithm,
  windowSeconds,
}: Pick<PartialRecord, 'limit' | 'algorithm' | 'windowSeconds'>): string | null {
  if (limit === null || algorithm === null || windowSeconds === null) return null;
  const { isHeld, isBacklog, span } = ALGORITHMS[algorithm];
  if (isHeld) return `${limit} in flight at once`;
  return isBacklog ? `${limit} at once` : `${limit} in ${span(windowSeconds)}`;
}

export function limitWhy(record: DecisionRecord): string[] {
  const { policy, limit, used, algorithm, cost = 1, isUnproven } = record;
  const takes = cost === 1 ? '' : `; the request takes ${cost}`;
  const were = ALGORITHMS[algorithm].isHeld ? 'were in flight' : 'were used';
  const counted = `policy ${policy} allows ${allowedText(record)}, and ${used ?? limit} ${were}${takes}`;
  if (isUnproven) {
    return [
      `For unproven keys, ${counted} by the client's address.`,
      'A key is proven when the application has answered it with a 2xx within the last 30 days.',
    ];
  }
  if (used !== null && used > limit)
    return [
      `The limit was reached: ${counted}.`,
      'More than the limit was used: replies took more units than were reserved, or the limit was lowered.',
    ];
  return [`The limit was reached: ${counted}.`];
}

export function limitAdvice({ file, line, isUnproven, algorithm }: DecisionRecord): string {
  if (isUnproven) return 'Check that the client sends a key that the application accepts.';
  if (ALGORITHMS[algorithm].isHeld)
    return `To let such clients have more requests in flight, raise concurrency in ${file}:${line}; it applies at once.`;
  return `To let such clients make more requests, raise limit in ${file}:${line}; it applies at once.`;
}

/** @param name null if no policy of the file has the name in the id */
export function policyText(name: string | null): string {
  return name === null ? 'a policy that is no longer in the file' : `policy ${name}`;
}
