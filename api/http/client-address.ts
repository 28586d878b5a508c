/** Where a request came from, as the proxies in front of us tell it. */
import type { FastifyRequest } from 'fastify';
import { clientAddress, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';

/** IPv6 addresses are counted by their network: the same as the gateway does for the same request. */
export function countedAddress(request: FastifyRequest, trustedProxies: ProxyTrust): string {
  return clientAddress(request.raw.socket.remoteAddress, forwardedFor(request), trustedProxies);
}

/** The whole address; null when the proxies' chain cannot be read. */
export function wholeAddress(request: FastifyRequest, trustedProxies: ProxyTrust): string | null {
  const { remoteAddress } = request.raw.socket;
  const address = clientAddress(remoteAddress, forwardedFor(request), trustedProxies, 128);
  return address === UNTRUSTED ? null : address.replace(/\/128$/, '');
}

function forwardedFor({ headers }: FastifyRequest): string {
  const header = headers['x-forwarded-for'] ?? '';
  return Array.isArray(header) ? header.join(',') : header;
}
