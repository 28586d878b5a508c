/** What refuses requests beside the policies: lists, bans, bounds. It counts nothing; it says where a refusal comes from. */
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import { Counter } from './counter.ts';
import type { Policy } from './policy.ts';
import { parseRoute } from './route.ts';

const ANY_ROUTE = parseRoute('* *');

/**
 * @param name with a space in it, which keeps it apart from those of policies
 * @param line in the policy file; 0: it does not stand there
 */
export function besidePolicies(name: string, line: number, more: Partial<Policy> = {}): Counter {
  const policy: Policy = {
    name,
    index: -1,
    at: [name],
    line,
    route: ANY_ROUTE,
    identifier: { name, kind: 'address', ipv6Prefix: 128 },
    limit: 0,
    overrides: null,
    algorithm: 'fixed-window',
    burst: null,
    capacity: 0,
    cost: { kind: 'units', units: 1 },
    count: 'request',
    windowMs: 0,
    windowSeconds: 0,
    bucket: name,
    bucketId: -1,
    rollout: null,
    mode: 'enforce',
    onStoreFailure: 'local',
    headers: false,
    ...more,
  };
  return new Counter(policy, false);
}

/** An operator has banned the client. */
export const BAN = besidePolicies('operator ban', 0);

const WHO: Readonly<Record<Refusal, string>> = {
  client: 'client address',
  network: 'IPv6 network',
  total: 'all clients',
};
const bounds = new Map<string, Counter>();

/** One for each bound and for whom it is, as decisions are told apart by it. */
export function boundCounter(bound: BoundName, refusal: Refusal): Counter {
  const name = `bound ${bound}`;
  const key = `${name} ${refusal}`;
  let counter = bounds.get(key);
  if (counter === undefined) {
    const who = WHO[refusal];
    counter = besidePolicies(name, 0, {
      algorithm: 'concurrency',
      identifier: { name: who, kind: 'address', ipv6Prefix: 128 },
    });
    bounds.set(key, counter);
  }
  return counter;
}
