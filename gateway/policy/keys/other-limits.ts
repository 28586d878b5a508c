/** Warnings that compare policies: whether another policy surely limits the same requests. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { partsOf, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { areImpliedBy } from '#gateway/policy/condition.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import type { Warning } from './key.ts';

/** Whether some of the others surely count each request of a policy, whoever sends it, and deny. */
export function areCounted(policy: LoadedPolicy, others: readonly LoadedPolicy[]): boolean {
  const sure = others.filter(
    (other) =>
      other.mode === 'enforce' &&
      other.unless === null &&
      other.onlyFor === null &&
      other.rollout === null &&
      areImpliedBy(other, policy),
  );
  return (
    coveredBy(
      policy.route,
      sure.map(({ route }) => route),
    ).length > 0
  );
}

/** Whether the limit is a number of requests: each one counts, and costs 1. */
function countsEach({ algorithm, cost, count, distinct }: LoadedPolicy): boolean {
  return (
    !ALGORITHMS[algorithm].isHeld &&
    distinct === null &&
    count === 'request' &&
    cost.kind === 'units' &&
    cost.units === 1
  );
}

/** One client should get at most one in so many of what all share. */
const ONE_IN = 10;
/** Parameters of a path that only one client knows, such as `/hooks/{token}`. */
const SECRET = /(token|secret|key)$/i;

/** Warns of a limit that many clients share, and that a single one of them could use up. */
export function easilyUsedUp(
  policy: LoadedPolicy,
  { policies }: Pick<PolicySet, 'policies'>,
): Warning | null {
  if (!isShared(policy) || policy.mode !== 'enforce' || !countsEach(policy)) return null;
  const own = policies.filter(
    (other) => countsEach(other) && countsAddresses(other, policy) && areCounted(policy, [other]),
  );
  const most = ({ limit, windowSeconds }: LoadedPolicy): number =>
    limit * Math.max(1, policy.windowSeconds / windowSeconds);
  const least = Math.min(policy.limit, ...own.map(most));
  if (least <= policy.limit / ONE_IN) return null;
  return [
    `one client can use ${least} of the ${policy.limit} requests that all clients of ${policy.name} share`,
    'add a policy by address on this route that allows each client at most a tenth of it',
  ];
}

/**
 * Limits of groups have shares, and robots may use up a limit that counts them together. No policy can allow a
 * tenth of fewer than ten requests.
 */
function isShared({ identifier, onlyFor, userAgent, limit }: LoadedPolicy): boolean {
  return (
    onlyFor === null && userAgent === null && limit >= ONE_IN && partsOf(identifier).every(hasManyClients)
  );
}

function hasManyClients(part: SimpleIdentifier): boolean {
  if (part.kind === 'path') return !SECRET.test(part.param);
  return part.kind === 'everyone' || part.kind === 'host' || part.kind === 'network';
}

/** Whether an address has one counter for all that the shared limit counts together. */
function countsAddresses({ identifier }: LoadedPolicy, shared: LoadedPolicy): boolean {
  if (identifier.kind === 'first') return identifier.address !== null;
  const parts = partsOf(identifier);
  const others = parts.filter(({ kind }) => kind !== 'address');
  const together = partsOf(shared.identifier);
  return others.length < parts.length && others.every((part) => together.includes(part));
}
