/**
 * The description of the API, and a page to read it. It is OpenAPI 3.1, generated from the schemas that validate and
 * serialise, so it always fits the routes. Register this before the routes, because it reads them when they are added.
 */
import type { RouteOptions } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Random } from '#api/ids.ts';
import { onFirstUse } from '#shared/first-use.ts';
import { DOCS_PATH, readerRoutes } from './reader.ts';
import type { DescribedSurface } from './refusals.ts';

const formats = ['json', 'yaml'] as const;
type Format = (typeof formats)[number];

interface DocsOptions {
  readonly publicUrl: string;
  readonly random: Random;
  /** @param target the router's pattern of a path */
  readonly findSurface: (target: string) => DescribedSurface;
}

export const docsPlugin = fastifyPlugin<DocsOptions>(
  async (app, { publicUrl, random, findSurface }) => {
    const routes: RouteOptions[] = [];
    app.addHook('onRoute', (route) => {
      // HEAD belongs to GET, and OPTIONS are preflights: neither is an operation of its own.
      if (route.method !== 'HEAD' && route.method !== 'OPTIONS') routes.push(route);
    });
    /** Generated once, for the first reader: it blocks the process for a tenth of a second. */
    const description = onFirstUse(async () => {
      const { describeRoutes } = await import('./document.ts');
      return describeRoutes(publicUrl, routes, findSurface);
    });
    const texts: Record<Format, () => Promise<string>> = {
      json: onFirstUse(async () => JSON.stringify(await description())),
      yaml: onFirstUse(async () => {
        const { toYaml } = await import('./yaml.ts');
        return toYaml(await description());
      }),
    };
    for (const format of formats) {
      app.get(`${DOCS_PATH}/openapi.${format}`, { schema: { hide: true } }, async (_request, reply) => {
        // Generators and pages of other origins may read the description.
        reply.header('access-control-allow-origin', '*');
        return reply
          .header('content-type', `application/${format}; charset=utf-8`)
          .send(await texts[format]());
      });
    }

    await app.register(readerRoutes, { random });
  },
  { name: 'docs', dependencies: ['http'] },
);
