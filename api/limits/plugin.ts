/**
 * Counts every request against a limit, after authentication and before the body is read. A route may name its limit in
 * its options, `config: { limit: 'storage.delete' }`; without one, the limit of its surface applies. Preflights are
 * never limited. A limit that counts sessions does not count API keys, and the other way round: the gateway limits
 * those.
 */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Principal } from '#api/auth/principal.ts';
import { tooManyRequests } from '#api/errors.ts';
import { countedAddress } from '#api/http/client-address.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Limiter } from './limiter.ts';
import { type LimitName, limitTable } from './table.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit of this route; null if there is none. Default: the limit of its surface. */
    readonly limit?: LimitName | null;
  }
}

interface RoutedRequest {
  readonly method: string;
  /** The router's pattern; the path of the request if no route matches. */
  readonly route: string;
  /** The caller; null if the route required no credentials. */
  readonly principal: Principal | null;
}

/** The limit of every route of a surface that does not set another one. */
export interface SurfaceLimit {
  readonly name: LimitName;
  /** Whether the gateway counts this request, so that the application does not count it again. */
  isCountedByGateway(request: RoutedRequest): boolean;
}

interface LimitsOptions {
  readonly limiter: Limiter;
  readonly trustedProxies: ProxyTrust;
  /** @param target the router's pattern, or the target where no route matches */
  readonly findSurface: (target: string) => { readonly limit: SurfaceLimit | null };
}

export const limitsPlugin = fastifyPlugin<LimitsOptions>(
  async (app, { limiter, trustedProxies, findSurface }) => {
    app.addHook('onRequest', async (request) => {
      if (request.method === 'OPTIONS') return;
      const { principal, method } = request;
      const { config, url } = request.routeOptions;
      const route = url ?? request.url.split('?', 1)[0] ?? '';
      const name =
        config?.limit === undefined
          ? limitOf(findSurface(route).limit, { method, route, principal })
          : config.limit;
      const identity = name === null ? null : identityOf(name, request, trustedProxies);
      if (name === null || identity === null) return;
      const seconds = await limiter.consume(name, identity);
      if (seconds !== null) throw tooManyRequests(seconds);
    });
  },
  { name: 'limits', dependencies: ['auth'] },
);

/** @returns the counted identity, with a prefix for the kind of id; null if the limit does not count this caller */
function identityOf(name: LimitName, request: FastifyRequest, trustedProxies: ProxyTrust): string | null {
  const { principal } = request;
  const { identifier } = limitTable[name];
  if (identifier === 'ip') return `ip:${countedAddress(request, trustedProxies)}`;
  // Organizations are counted where the action happens, see `Limiter.consume`.
  if (principal === null || identifier === 'organization') return null;
  if (principal.kind === 'session') return `user:${principal.userId}`;
  // The gateway counts keys, except on routes that no policy covers, such as /api/v1/me.
  return identifier === 'sessionUser' && name !== 'api.v1' ? null : `key:${principal.apiKeyId}`;
}

export function limitOf(limit: SurfaceLimit | null, request: RoutedRequest): LimitName | null {
  return limit === null || limit.isCountedByGateway(request) ? null : limit.name;
}
