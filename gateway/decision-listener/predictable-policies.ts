/** Refuses policies that the decision listener cannot apply, because it sees neither bodies nor replies. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { countsBody, type Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { PolicyFileError, type Problem } from '#gateway/policy/problems.ts';
import type { ReadReferenced } from '#gateway/policy/referenced-files.ts';
import { loadTestedPolicies } from '#gateway/workbench/rehearsal/policy-tests.ts';

const OR_FORWARD = 'or use it in a gateway that forwards the requests';

/**
 * Loads a policy file for a gateway with a decision listener.
 *
 * @throws PolicyFileError which lists all mistakes, failed tests, and policies that the listener cannot apply
 */
export function loadPredictable(text: string, file: string, readReferenced?: ReadReferenced): PolicySet {
  const set = loadTestedPolicies(text, file, readReferenced);
  const problems = set.policies.flatMap((policy): Problem[] => {
    const why = unpredictability(policy);
    if (why === null) return [];
    const message = `${policy.name} ${why}, which the gateway cannot see on GATEWAY_DECISION_PORT`;
    const fix =
      (policy.cost.kind === 'reply-header' || policy.cost.kind === 'reply-bytes') &&
      policy.cost.reserve !== null
        ? `write cost: ${policy.cost.reserve} to charge the reserve, ${OR_FORWARD}`
        : `remove it, ${OR_FORWARD}`;
    return [{ line: policy.line, column: 1, message, fix }];
  });
  if (problems.length > 0) throw new PolicyFileError(set.file, problems);
  return set;
}

function unpredictability(policy: Policy): string | null {
  const { algorithm, cost, count } = policy;
  if (cost.kind === 'reply-header') return `has a cost that the header ${cost.header} of replies reports`;
  if (cost.kind === 'reply-bytes') return 'depends on the length of replies';
  if (ALGORITHMS[algorithm].isHeld) return 'counts requests in flight, so it depends on the end of replies';
  if (count !== 'request') return `has "count: ${count}", so it depends on the status of replies`;
  if (countsBody(policy)) return 'counts a field of bodies';
  return cost.kind === 'body-bytes' ? 'depends on the length of bodies' : null;
}
