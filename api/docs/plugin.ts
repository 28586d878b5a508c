/**
 * The description of the API. It is OpenAPI 3.1, generated from the schemas that validate and serialise, so it always
 * fits the routes. Register this before the routes, because it reads them when they are added.
 */
import type { RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { DescribedSurface } from './route.ts';

interface DocsOptions {
  readonly publicUrl: string;
  /** @param target the router's pattern of a path */
  readonly findSurface: (target: string) => DescribedSurface;
}

export const docsPlugin = fastifyPlugin<DocsOptions>(
  async (app, { publicUrl, findSurface }) => {
    const routes: RouteOptions[] = [];
    app.addHook('onRoute', (route) => {
      // HEAD belongs to GET, and OPTIONS are preflights: neither is an operation of its own.
      if (route.method !== 'HEAD' && route.method !== 'OPTIONS') routes.push(route);
    });
    /** Generated once, for the first reader. */
    let description: Promise<string> | null = null;
    const describe = async (): Promise<string> => {
      const { describeRoutes } = await import('./document.ts');
      return JSON.stringify(await describeRoutes(publicUrl, routes, findSurface));
    };
    for (const path of ['/api/docs', '/api/docs/openapi.json']) {
      app.get(path, { schema: { hide: true } }, async (_request, reply) => {
        description ??= describe();
        // Generators and pages of other origins may read the description.
        return reply
          .header('access-control-allow-origin', '*')
          .header('content-type', 'application/json; charset=utf-8')
          .send(await description);
      });
    }
  },
  { name: 'docs', dependencies: ['http'] },
);
