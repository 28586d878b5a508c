/** Decides which client a denial counts against, for policies with `ban`. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Enforcement } from './enforcement.ts';
import type { Caller } from './reading/caller.ts';
import type { ChargedTo } from './reading/reading.ts';

interface DeniedRequest {
  readonly caller: Caller;
  readonly charged: ChargedTo | null;
}

/**
 * Counts denials so that no client can cause a ban of another one. A denial counts against the address that sent the
 * request, or against a proven key. A key is proven if the application has accepted it, or if the calling proxy or the
 * operator vouches for it. If a proxy does not name the client, denials count against nobody.
 *
 * @param policies the policies that denied the request, or would have denied it in shadow mode
 */
export function noteOffences(
  { options }: Enforcement,
  request: DeniedRequest,
  policies: readonly Policy[],
): void {
  const noted = new Set<string>();
  for (const policy of policies) {
    const { ban, mode } = policy;
    // A policy that marks bans nobody.
    if (ban === null || mode === 'mark' || noted.has(ban.bucket)) continue;
    const identity = offenderOf(options, request, policy);
    if (identity === null) continue;
    noted.add(ban.bucket);
    options.offenders?.note(ban, identity, mode);
  }
}

function offenderOf(
  { limiter, trust }: Enforcement['options'],
  { caller, charged }: DeniedRequest,
  { identifier, bucketId }: Policy,
): Identity | null {
  if (identifier.kind === 'address') return addressOf(caller, trust);
  const buckets = (charged?.charge.buckets ?? []).filter(({ policy }) => policy.bucketId === bucketId);
  const own = buckets.find(({ counter }) => !counter.forUnproven);
  if (own === undefined) return null;
  // A policy that counts the first of several identifiers counts some requests by their address.
  if (own.identity.digest === caller.identity().digest) return addressOf(caller, trust);
  const isUnproven = buckets.length > 1 && !limiter.isProven(own.identity);
  return isUnproven ? null : own.identity;
}

function addressOf(caller: Caller, trust: ProxyTrust): Identity | null {
  return caller.address.isOneClient(trust) ? caller.identity() : null;
}
