/** Ranks the clients that limits deny most often, and remembers their addresses if operators may see them. */

import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Ranking } from '#gateway/observe/metrics/ranking.ts';
import type { Observer } from '#gateway/request/events.ts';
import { noteAddress } from '#gateway/request/refuse.ts';

/** @param limited the other count is of admitted requests */
export function deniedClients(limited: Ranking, addresses: RefusedAddresses | null): Observer {
  return {
    refused({ charged, caller, arrivedAt }, refusal) {
      if (refusal.kind !== 'limit') return;
      const seen: string[] = [];
      for (const { policy, identity } of charged?.charge.buckets ?? []) {
        // A limit for everyone denies the request of one client, so that client is counted.
        const { digest } = policy.identifier.kind === 'everyone' ? caller.identity() : identity;
        if (seen.includes(digest) || !refusal.violated.some((one) => one.policy === policy)) continue;
        seen.push(digest);
        limited.count(digest, policy.name, arrivedAt);
        noteAddress(addresses, digest, caller);
      }
    },
    passed({ charged, caller }) {
      if (limited.isEmpty) return;
      const digests = new Set([caller.identity().digest]);
      for (const { identity } of charged?.charge.buckets ?? []) digests.add(identity.digest);
      for (const digest of digests) limited.countOther(digest);
    },
  };
}
