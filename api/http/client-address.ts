/** Reads the client address that trusted proxies report. */
import type { FastifyRequest } from 'fastify';
import { clientAddress, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';

/** Returns the address that limits count. IPv6 addresses count by network, as in the gateway. */
export function countedAddress(request: FastifyRequest, trustedProxies: ProxyTrust): string {
  return clientAddress(request.raw.socket.remoteAddress, forwardedFor(request), trustedProxies);
}

/** Returns the whole address; null if the chain of proxies cannot be read. */
export function wholeAddress(request: FastifyRequest, trustedProxies: ProxyTrust): string | null {
  const { remoteAddress } = request.raw.socket;
  const address = clientAddress(remoteAddress, forwardedFor(request), trustedProxies, 128);
  return address === UNTRUSTED ? null : address.replace(/\/128$/, '');
}

function forwardedFor({ headers }: FastifyRequest): string {
  const header = headers['x-forwarded-for'] ?? '';
  return Array.isArray(header) ? header.join(',') : header;
}
