/**
 * The API's description: OpenAPI 3.1 out of the schemas that validate and serialise, so that it cannot say anything
 * else than what the routes do, and a page to read it on. Registered before the routes, which it watches being added.
 */
import fastifySwagger from '@fastify/swagger';
import fastifyPlugin from 'fastify-plugin';
import type { Random } from '#api/ids.ts';
import { completed, documentOf } from './document.ts';
import { DOCS_PATH, readerRoutes } from './reader.ts';
import { describeRoute } from './route.ts';
import { toYaml } from './yaml.ts';

const formats = ['json', 'yaml'] as const;
type Format = (typeof formats)[number];

export interface DocsOptions {
  readonly publicUrl: string;
  readonly random: Random;
}

export const docsPlugin = fastifyPlugin<DocsOptions>(
  async (app, { publicUrl, random }) => {
    await app.register(fastifySwagger, {
      openapi: documentOf(publicUrl),
      stripBasePath: false,
      transform: describeRoute,
      transformObject: (built) =>
        'openapiObject' in built ? completed(built.openapiObject) : built.swaggerObject,
    });

    /** Made when it is first asked for, and once: it takes a tenth of a second, in which no request is answered. */
    const texts = new Map<string, string>();
    const textOf = (format: Format): string => {
      const known = texts.get(format);
      if (known !== undefined) return known;
      const made = format === 'yaml' ? toYaml(app.swagger()) : JSON.stringify(app.swagger());
      texts.set(format, made);
      return made;
    };
    for (const format of formats) {
      app.get(`${DOCS_PATH}/openapi.${format}`, { schema: { hide: true } }, async (_request, reply) => {
        // Generators and other people's pages may read it.
        reply.header('access-control-allow-origin', '*');
        return reply.header('content-type', `application/${format}; charset=utf-8`).send(textOf(format));
      });
    }

    await app.register(readerRoutes, { random });
  },
  { name: 'docs', dependencies: ['http'] },
);
