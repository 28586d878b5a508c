/** Describes where the gateway read a client address. */
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Caller } from './reading/caller.ts';

export function addressSource({ origin, address }: Caller, trust: ProxyTrust): string {
  if (trust.kind === 'none' || !origin.trusted) return origin.isIntroduced ? 'PROXY header' : 'socket';
  if (!address.isReadable) return 'unreadable X-Forwarded-For';
  if (trust.kind === 'cidrs') return 'X-Forwarded-For, past trusted networks';
  return `X-Forwarded-For, ${trust.hops} trusted ${trust.hops === 1 ? 'proxy' : 'proxies'}`;
}
