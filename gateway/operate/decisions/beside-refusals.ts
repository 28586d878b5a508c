/** What is kept of refusals that no policy made: by a list, by a ban, by a bound. */
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { BAN } from '#gateway/policy/beside-policies.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { DENIED_SECONDS } from '#gateway/reply/denial.ts';
import type { Millis } from '#shared/clock.ts';
import type { Refusal } from './decisions.ts';

/** Nobody knows when something will be given back. */
const TRY_AGAIN_MS: Millis = 1000;

/** By the list deny. */
export function listedRefusal(counter: Counter, identity: Identity): Refusal {
  const resetMs = DENIED_SECONDS * 1000;
  return { ...BESIDE, ...by(counter, identity), decision: 'listed', resetMs, fromMemory: true };
}

/** By an operator. @param leftMs until the ban ends */
export function banRefusal(identity: Identity, leftMs: Millis): Refusal {
  return { ...BESIDE, ...by(BAN, identity), decision: 'banned', resetMs: leftMs };
}

/** By a bound: a client, or all together, holds as much as may be. @param client null where nobody in particular holds it */
export function boundRefusal(
  bound: Bound,
  refusal: BoundRefusal,
  client: Client | null,
  counter: Counter,
  identity: Identity,
): Refusal {
  const holder = refusal === 'client' ? client : refusal === 'network' ? (client?.network ?? null) : null;
  return {
    ...BESIDE,
    ...by(counter, identity),
    decision: 'busy',
    limit: holder === null ? bound.total : bound.limitOf(refusal),
    used: holder === null ? bound.held : bound.heldBy(holder),
    resetMs: TRY_AGAIN_MS,
  };
}

const BESIDE = { limit: 0, used: null, isLocal: true, fromMemory: false } as const;

function by(counter: Counter, identity: Identity): Pick<Refusal, 'part' | 'violated'> {
  return { part: { counter, policy: counter.policy, identity, cost: 1 }, violated: [counter] };
}
