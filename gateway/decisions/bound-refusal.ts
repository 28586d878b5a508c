/** What is kept of a refusal because a client, or all together, holds as much as may be. */
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Millis } from '#shared/clock.ts';
import type { Refusal } from './decisions.ts';

/** Nobody knows when something will be given back. */
const TRY_AGAIN_MS: Millis = 1000;

/** @param client null where nobody in particular holds it */
export function boundRefusal(
  bound: Bound,
  refusal: BoundRefusal,
  client: Client | null,
  counter: Counter,
  identity: Identity,
): Refusal {
  const isShare = refusal === 'client' && client !== null;
  return {
    decision: 'busy',
    part: { counter, policy: counter.policy, identity, cost: 1 },
    limit: isShare ? bound.perClient : bound.total,
    used: isShare ? bound.heldBy(client) : bound.held,
    resetMs: TRY_AGAIN_MS,
    isLocal: true,
    fromMemory: false,
  };
}
