/** Answers a known path with an unknown method with 405 and the list of its methods. */
import type { FastifyInstance, HTTPMethods, RouteOptions } from 'fastify';
import { methodNotAllowed } from '#api/errors.ts';
import type { FindReplyRules } from './reply-headers.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const satisfies HTTPMethods[];

interface Path {
  readonly methods: Set<string>;
  readonly config: RouteOptions['config'];
}

/** Collects the methods of each path while routes are added. Call the result after the last one. */
export function collectMethods(
  app: FastifyInstance,
  findRules: FindReplyRules,
): { refuseOtherMethods(): void } {
  const paths = new Map<string, Path>();
  app.addHook('onRoute', ({ url, method, config }) => {
    const path = paths.get(url) ?? { methods: new Set<string>(), config };
    for (const one of [method].flat()) path.methods.add(one);
    paths.set(url, path);
  });

  return {
    refuseOtherMethods() {
      for (const [url, { methods, config }] of [...paths]) {
        // Routes with a wildcard do this themselves.
        if (url.includes('*')) continue;
        const hasPreflight = findRules(url).isCrossOrigin;
        const missing = METHODS.filter(
          (method) => !methods.has(method) && !(hasPreflight && method === 'OPTIONS'),
        );
        const allowed = [...methods, ...(hasPreflight ? ['OPTIONS'] : [])];
        app.route({
          method: missing,
          url,
          schema: { hide: true },
          // If a path needs no credentials, neither does this reply.
          config: config?.credentials === null ? { credentials: null } : {},
          handler: async (request) => {
            throw methodNotAllowed(request.method, allowed);
          },
        });
      }
    },
  };
}
