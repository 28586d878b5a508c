import type { IntroducedConnections } from '#gateway/listen/entrance.ts';
import { optionalPart } from '#gateway/part/part.ts';
import type { Variable } from '#shared/configuration.ts';

const VARIABLES = [
  {
    name: 'GATEWAY_PROXY_PROTOCOL',
    default: '0',
    meaning:
      '1: every connection must come from a proxy in `GATEWAY_TRUSTED_PROXIES` and begin with a header of the PROXY protocol, version 1 or 2',
  },
] as const satisfies readonly Variable[];

export const proxyProtocol = optionalPart({
  name: 'PROXY protocol',
  variables: VARIABLES,
  read(read, { trust }) {
    if (!read.flag('GATEWAY_PROXY_PROTOCOL')) return null;
    if (trust.kind !== 'cidrs') {
      read.refuse(
        'GATEWAY_PROXY_PROTOCOL',
        'it needs the addresses of the proxies in GATEWAY_TRUSTED_PROXIES: only their headers are trusted, and a hop count names no address',
      );
    }
    return { trust };
  },
  async open({ trust }) {
    const { Introductions } = await import('./introductions.ts');
    const introductions = new Introductions(trust);
    const slots: { readonly introductions: IntroducedConnections } = { introductions };
    return { slots, samples: () => introductions.samples() };
  },
});
