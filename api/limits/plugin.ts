/**
 * Spends the limit of every route, right after we know who is calling and before the body is read. A route may name its
 * limit in its options, `config: { limit: 'storage.delete' }`; without one, that of its surface applies. Preflights
 * are never limited. A caller whom the row's identifier does not describe, such as a key where sessions are counted, is
 * not counted by it: that is the edge's part.
 */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { tooManyRequests } from '#api/errors.ts';
import { countedAddress } from '#api/http/client-address.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Limiter } from './limiter.ts';
import { limitOf, type SurfaceLimit } from './surface-limit.ts';
import { type LimitName, limitTable } from './table.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit of this route; null: none. Unset: that of its surface. */
    readonly limit?: LimitName | null;
  }
}

export interface LimitsOptions {
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
      const outcome = await limiter.consume(name, identity);
      if (!outcome.isAllowed) throw tooManyRequests(outcome.retryAfterSeconds);
    });
  },
  { name: 'limits', dependencies: ['auth'] },
);

/** Who is counted; null: this caller is none of the row's. Ids of different kinds never meet: each has its prefix. */
function identityOf(name: LimitName, request: FastifyRequest, trustedProxies: ProxyTrust): string | null {
  const { principal } = request;
  switch (limitTable[name].identifier) {
    case 'ip':
      return `ip:${countedAddress(request, trustedProxies)}`;
    case 'sessionUser':
      if (principal?.kind === 'session') return `user:${principal.userId}`;
      // Keys are the gateway's, except on routes that it does not know, such as /api/v1/me.
      return principal?.kind === 'apiKey' && name === 'api.v1' ? `key:${principal.apiKeyId}` : null;
    case 'apiKey':
    case 'caller':
    case 'user':
      if (principal === null) return null;
      return principal.kind === 'session' ? `user:${principal.userId}` : `key:${principal.apiKeyId}`;
    case 'organization':
      // Counted where the action happens, see `Limiter.consume`: no route is a follow-up.
      return null;
  }
}
