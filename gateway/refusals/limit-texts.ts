/** The words of refusals by limits. They are null if the limit is not that of a group of clients. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { type Allowed, allowanceOf, unitOf } from '#gateway/policy/allowance.ts';
import type { GroupWords } from '#gateway/policy/groups.ts';
import type { DecisionRecord } from './decision-record.ts';

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

/** Says which limit was reached, and how much of it was used. */
export function limitWhy(words: GroupWords | null, record: DecisionRecord): string[] {
  const { policy, limit, used, isUnproven } = record;
  const whose = isUnproven ? 'For unproven keys from one address, the' : 'The';
  const reasons = [
    `${whose} limit was reached: policy ${policy} allows ${allowedText(record)}, and ${usedText(record)}.`,
  ];
  if (isUnproven)
    reasons.push('A key is proven when the application has answered it with a 2xx within the last 30 days.');
  else if (used !== null && used > limit)
    reasons.push(
      'More than the limit was used: replies took more units than were reserved, or the limit was lowered.',
    );
  if (words !== null) reasons.push(words.why);
  return reasons;
}

/** @returns such as `5 in 60 s` */
function allowedText({ limit, algorithm, windowSeconds }: DecisionRecord): string {
  const { isHeld, isBacklog, span } = ALGORITHMS[algorithm];
  if (isHeld) return `${limit} in flight at once`;
  return isBacklog ? `${limit} at once` : `${limit} in ${span(windowSeconds)}`;
}

/** @returns such as `5 were used` */
function usedText({ limit, used, algorithm, cost }: DecisionRecord): string {
  const were = ALGORITHMS[algorithm].isHeld ? 'were in flight' : 'were used';
  return `${used ?? limit} ${were}${cost === 1 ? '' : `; the request takes ${cost}`}`;
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
