/** The words of refusals by limits. They are null if the limit is not that of a group of clients. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type Allowed, allowanceOf, unitOf } from '#gateway/policy/allowance.ts';
import type { GroupWords } from '#gateway/policy/groups.ts';
import type { DecisionRecord, PartialRecord } from './decision-record.ts';

/** @param first the violation with the longest wait; undefined if it is not known */
export function limitText(
  words: GroupWords | null,
  first: (Allowed & { readonly canNeverPass: boolean }) | undefined,
): string {
  if (first === undefined) return 'Too many requests.';
  const { policy, capacity, canNeverPass } = first;
  if (canNeverPass)
    return `This request takes more of policy ${policy.name} than can ever be used at once, ${capacity}${unitOf(policy)}. It cannot pass: send less in one request.`;
  const together = words === null ? '' : `${words.key} together `;
  return `${words?.heading ?? 'Too many requests'}: policy ${policy.name} allows ${together}${allowanceOf(first, ' seconds')}. Wait for the seconds in Retry-After.`;
}

/** Says what the id of a refusal tells; the rest only if the record is whole. */
export function limitWhy(words: GroupWords | null, record: PartialRecord): string[] {
  const { policy, limit, used, isUnproven } = record;
  const allowed = allowedText(record);
  const reached =
    allowed === null
      ? `limit of ${policyText(policy)} was reached`
      : `limit was reached: ${policyText(policy)} allows ${allowed}${usedText(record)}`;
  const reasons = [`${isUnproven === true ? 'For unproven keys from one address, the' : 'The'} ${reached}.`];
  if (isUnproven === true)
    reasons.push('A key is proven when the application has answered it with a 2xx within the last 30 days.');
  else if (used !== null && limit !== null && used > limit)
    reasons.push(
      'More than the limit was used: replies took more units than were reserved, or the limit was lowered.',
    );
  if (words !== null) reasons.push(words.why);
  return reasons;
}

/** @returns such as `5 in 60 s`; null if the limit is not known */
function allowedText({ limit, algorithm, windowSeconds }: PartialRecord): string | null {
  if (limit === null || algorithm === null || windowSeconds === null) return null;
  const { isHeld, isBacklog, span } = ALGORITHMS[algorithm];
  if (isHeld) return `${limit} in flight at once`;
  return isBacklog ? `${limit} at once` : `${limit} in ${span(windowSeconds)}`;
}

/** @returns how much was used; '' if only the id of the refusal is known */
function usedText({ limit, used, algorithm, cost, endsAt }: PartialRecord): string {
  if (endsAt === null) return '';
  const were = algorithm !== null && ALGORITHMS[algorithm].isHeld ? 'were in flight' : 'were used';
  const takes = (cost ?? 1) === 1 ? '' : `; the request takes ${cost}`;
  return `, and ${used ?? limit} ${were}${takes}`;
}

export function limitAdvice(words: GroupWords | null, record: DecisionRecord): string {
  const { file, line, path, isUnproven, algorithm } = record;
  if (words !== null)
    return `To let more ${words.key} in, raise the limit of ${words.key} in ${file}:${line}; it applies at once. To exempt ${path}, add it to except.`;
  if (isUnproven) return 'Check that the client sends a key that the application accepts.';
  if (ALGORITHMS[algorithm].isHeld)
    return `To let such clients have more requests in flight, raise concurrency in ${file}:${line}; it applies at once.`;
  return `To let such clients make more requests, raise limit in ${file}:${line}; it applies at once.`;
}

/** @param name null if no policy of the file has the name in the id */
export function policyText(name: string | null): string {
  return name === null ? 'a policy that is no longer in the file' : `policy ${name}`;
}
