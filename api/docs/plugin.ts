/** Serves the description of the API. Register this before the routes, because it reads them when they are added. */
import type { RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { type DescribedSurface, describeRoutes } from './document.ts';

interface DocsOptions {
  readonly publicUrl: string;
  /** @param target the router's pattern of a path */
  readonly findSurface: (target: string) => DescribedSurface;
}

export const docsPlugin = fastifyPlugin<DocsOptions>(
  async (app, { publicUrl, findSurface }) => {
    const routes: RouteOptions[] = [];
    app.addHook('onRoute', (route) => void routes.push(route));
    /** Generated once, for the first reader. */
    let description: string | null = null;
    for (const path of ['/api/docs', '/api/docs/openapi.json']) {
      app.get(path, { schema: { hide: true } }, async (_request, reply) => {
        description ??= describeRoutes(publicUrl, routes, findSurface);
        // Generators and pages of other origins may read the description.
        return reply
          .header('access-control-allow-origin', '*')
          .header('content-type', 'application/json; charset=utf-8')
          .send(description);
      });
    }
  },
  { name: 'docs', dependencies: ['http'] },
);
