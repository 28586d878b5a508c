/** Warns of a limit that many clients share, and that a single one of them could use up. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { isConditional } from '#gateway/policy/condition.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import type { Warning, WholeFile } from './key.ts';
import { countEach, mostIn } from './never-reached.ts';

/** One client should get at most one in so many of what all share. */
const ONE_IN = 10;

export function easilyUsedUp(
  policy: LoadedPolicy,
  { policies }: Pick<WholeFile, 'policies'>,
): Warning | null {
  if (!isShared(policy) || policy.mode !== 'enforce' || !countEach([policy])) return null;
  const own = policies.filter(
    (other) => limitsClients(other) && coveredBy(policy.route, [other.route]).length > 0,
  );
  const least = Math.min(...own.map((other) => mostIn(other, policy)));
  if (least <= policy.limit / ONE_IN) return null;
  const fix = 'add a policy by address that allows each client at most a tenth of it';
  return own.length === 0
    ? [`one client can use up ${policy.name}, because no policy limits single clients on this route`, fix]
    : [
        `one client can use ${least} of the ${policy.limit} requests that all clients of ${policy.name} share`,
        fix,
      ];
}

/** Limits for newcomers have shares, and conditions choose some clients, such as robots, whose limit may be used up. */
function isShared(policy: LoadedPolicy): boolean {
  const { identifier, regulars } = policy;
  if (regulars !== null || isConditional(policy)) return false;
  return identifier.kind === 'everyone' || identifier.kind === 'host';
}

function limitsClients(policy: LoadedPolicy): boolean {
  const { identifier, mode, unless, regulars, rollout, algorithm } = policy;
  const isOfClients =
    identifier.kind === 'address' || (identifier.kind === 'first' && identifier.address !== null);
  const isForAll = unless === null && regulars === null && rollout === null && !isConditional(policy);
  return (
    isOfClients && isForAll && mode === 'enforce' && !ALGORITHMS[algorithm].isHeld && countEach([policy])
  );
}
