/** Decides which client a denial counts against, for policies with `ban`. */
import type { Offenders } from '#gateway/bans/offenders.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Observer, RequestFacts } from '#gateway/request/events.ts';
import type { Caller } from '#gateway/request/reading/caller.ts';
import type { ProxyTrust } from '#shared/client-address.ts';

/**
 * Counts denials so that no client can cause a ban of another one. A denial counts against the address that sent the
 * request, or against a proven key. A key is proven if the application has accepted it, or if the calling proxy or the
 * operator vouches for it. If a proxy does not name the client, denials count against nobody.
 */
export function offences(
  offenders: Pick<Offenders, 'note'>,
  limiter: Pick<Limiter, 'isProven'>,
  trust: ProxyTrust,
): Observer {
  /** @param policies that denied the request, or would have denied it in shadow mode */
  const note = (request: RequestFacts, policies: readonly Policy[]): void => {
    const noted = new Set<string>();
    for (const policy of policies) {
      const { ban, mode } = policy;
      // A policy that marks bans nobody.
      if (ban === null || mode === 'mark' || noted.has(ban.bucket)) continue;
      const identity = offenderOf(limiter, trust, request, policy);
      if (identity === null) continue;
      noted.add(ban.bucket);
      offenders.note(ban, identity, mode);
    }
  };
  // During an outage, each process applies a share of the limit. A client can exceed the share without an offence.
  return {
    passed(request) {
      const { allowed, spent } = request;
      if (allowed !== null && allowed.shadowDenials.length > 0 && spent?.isLocal === false)
        note(request, allowed.shadowDenials);
    },
    refused(request, refusal) {
      if (refusal.kind !== 'limit' || refusal.by === 'share') return;
      const bans = refusal.violated.filter(({ policy }) => policy.ban !== null);
      if (bans.length === 0) return;
      note(
        request,
        bans.map(({ policy }) => policy),
      );
    },
  };
}

function offenderOf(
  limiter: Pick<Limiter, 'isProven'>,
  trust: ProxyTrust,
  { caller, charged }: RequestFacts,
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
