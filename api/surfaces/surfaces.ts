/** Finds the surface of a path, and registers each surface as one Fastify scope. */
import type { FastifyInstance } from 'fastify';
import type { Context } from '#api/context.ts';
import { percentDecoded } from '#api/values/percent-encoding.ts';
import { client } from './client.ts';
import { management } from './management.ts';
import { pages } from './pages.ts';
import type { Surface } from './surface.ts';
import { v2 } from './v2.ts';
import { v3 } from './v3.ts';

/** The client's prefix for v2 lies below that of v2, so the client comes first. */
const surfaces: readonly Surface[] = [client, management, v2, v3, pages];

/** @param target a request target or a route's pattern: a path, perhaps with a query; it may be malformed */
export function surfaceOf(target: string): Surface {
  // The router decodes percent-encodings before it matches. It refuses a malformed target with 400, in the error shape
  // of its literal prefix.
  const path = percentDecoded(target.split(/[?#]/, 1)[0] ?? '');
  const isBelow = (prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`);
  return surfaces.find(({ prefixes }) => prefixes.some(isBelow)) ?? pages;
}

/** @throws Error if a route is outside of the surface that lists it */
export async function registerSurfaces(app: FastifyInstance, context: Context): Promise<void> {
  for (const surface of surfaces) {
    await app.register(async (scope) => {
      scope.addHook('onRoute', ({ url }) => {
        if (surfaceOf(url) !== surface)
          throw new Error(`${url} is not a path of the surface ${surface.name}`);
      });
      for (const routes of surface.routes) await scope.register(routes, { context });
    });
  }
}
