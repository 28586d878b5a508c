import { optionalPart } from '#gateway/part/part.ts';

export const proxyProtocol = optionalPart({
  variables: [
    {
      name: 'GATEWAY_PROXY_PROTOCOL',
      default: '0',
      meaning:
        '1: every connection must come from a [trusted proxy](operating.md#proxies-in-front) and begin with a header of the PROXY protocol',
    },
  ],
  read(read, { trust }) {
    if (!read.flag('GATEWAY_PROXY_PROTOCOL')) return null;
    if (trust.kind !== 'cidrs') {
      read.refuse(
        'GATEWAY_PROXY_PROTOCOL',
        'it needs the addresses of the proxies in GATEWAY_TRUSTED_PROXIES: only their headers are trusted, and a hop count names no address',
      );
    }
    return {
      async open() {
        const { Introductions } = await import('./introductions.ts');
        const introductions = new Introductions(trust);
        return { slots: { introductions }, samples: () => introductions.samples() };
      },
    };
  },
});
