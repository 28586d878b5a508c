/**
 * Spends the limit of every route, right after we know who is calling and before the body is read. A route may name its
 * limit in its options, `config: { limit: 'storage.delete' }`; without one, `coverage.ts` decides by the path. Preflights
 * are never limited. A caller whom the row's identifier does not describe, such as a key where sessions are counted, is
 * not counted by it: that is the edge's part.
 */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Context } from '#api/context.ts';
import { tooManyRequests } from '#api/errors.ts';
import { familyOf } from '#api/surfaces/surface.ts';
import { clientAddress } from '#shared/client-address.ts';
import { defaultLimit } from './coverage.ts';
import { type LimitName, limitTable } from './table.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The limit of this route by its name in SPEC.md §8; null: none. Unset: the path decides, see coverage.ts. */
    readonly limit?: LimitName | null;
  }
}

export const limitsPlugin = fastifyPlugin<{ readonly context: Context }>(
  async (app, { context }) => {
    app.addHook('onRequest', async (request) => {
      if (request.method === 'OPTIONS') return;
      const { config, url } = request.routeOptions;
      const route = url ?? request.url.split('?', 1)[0] ?? '';
      const name =
        config?.limit === undefined
          ? defaultLimit(familyOf(route), request.method, route, request.principal)
          : config.limit;
      if (name === null) return;
      const identity = identityOf(name, request, context);
      if (identity !== null) await enforceLimit(context, name, identity);
    });
  },
  { name: 'limits', dependencies: ['auth'] },
);

/** @throws ApiError too_many_requests; when the store is away it lets everybody pass */
export async function enforceLimit(context: Context, name: LimitName, identity: string): Promise<void> {
  const verdict = await context.limits.consume(name, identity);
  if (!verdict.isAllowed) throw tooManyRequests(verdict.retryAfterSeconds);
}

/** The address that is counted: the same as the gateway's, for the same request. */
export function addressOf(request: FastifyRequest, { config }: Context): string {
  const forwarded = request.headers['x-forwarded-for'];
  const chain = Array.isArray(forwarded) ? forwarded.join(',') : (forwarded ?? '');
  return clientAddress(request.raw.socket.remoteAddress, chain, config.trustedProxies);
}

/** Who is counted; null: this caller is none of the row's. Ids of different kinds never meet: each has its prefix. */
function identityOf(name: LimitName, request: FastifyRequest, context: Context): string | null {
  const { principal } = request;
  switch (limitTable[name].identifier) {
    case 'ip':
      return `ip:${addressOf(request, context)}`;
    case 'sessionUser':
      if (principal?.kind === 'session') return `user:${principal.userId}`;
      // The me route is the application's for keys too (contract management-api.md §8).
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
