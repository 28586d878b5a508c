/** Warns of a limit that many clients share, and that a single one of them could use up. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { partsOf, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import { areImpliedBy } from '#gateway/policy/condition.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { coveredBy } from '#gateway/policy/route.ts';
import type { Warning, WholeFile } from './key.ts';
import { countEach, mostIn } from './never-reached.ts';

/** One client should get at most one in so many of what all share. */
const ONE_IN = 10;
/** Parameters of a path that only one client knows, such as `/hooks/{token}`. */
const SECRET = /(token|secret|key)$/i;

export function easilyUsedUp(
  policy: LoadedPolicy,
  { policies }: Pick<WholeFile, 'policies'>,
): Warning | null {
  if (!isShared(policy) || policy.mode !== 'enforce' || !countEach([policy])) return null;
  const own = policies.filter(
    (other) => limitsClients(other, policy) && coveredBy(policy.route, [other.route]).length > 0,
  );
  const least = Math.min(...own.map((other) => mostIn(other, policy)));
  if (least <= policy.limit / ONE_IN) return null;
  const fix = 'add a policy by address that allows each client at most a tenth of it';
  return own.length === 0
    ? [`one client can use up ${policy.name}, because no policy limits single clients on this route`, fix]
    : [
        `one client can use ${Math.min(least, policy.limit)} of the ${policy.limit} requests that all clients of ${policy.name} share`,
        fix,
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

function limitsClients(policy: LoadedPolicy, shared: LoadedPolicy): boolean {
  const { mode, unless, onlyFor, rollout, algorithm } = policy;
  const isForAll = unless === null && onlyFor === null && rollout === null && areImpliedBy(policy, shared);
  return (
    isForAll &&
    mode === 'enforce' &&
    !ALGORITHMS[algorithm].isHeld &&
    countEach([policy]) &&
    countsAddresses(policy, shared)
  );
}

/** Whether an address has one counter for all that the shared limit counts together. */
function countsAddresses({ identifier }: LoadedPolicy, shared: LoadedPolicy): boolean {
  if (identifier.kind === 'first') return identifier.address !== null;
  const parts = partsOf(identifier);
  const others = parts.filter(({ kind }) => kind !== 'address');
  const together = partsOf(shared.identifier);
  return others.length < parts.length && others.every((part) => together.includes(part));
}
