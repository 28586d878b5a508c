/**
 * The API's description: OpenAPI 3.1 out of the schemas that validate and serialise, so that it cannot say anything
 * else than what the routes do, and a page to read it on. Registered before the routes, which it watches being added.
 *
 * The page brings its own script: it loads nothing from elsewhere, and its policy allows nothing else.
 */
import fastifySwagger from '@fastify/swagger';
import scalar from '@scalar/fastify-api-reference';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { Random } from '#api/ids.ts';
import { completed, documentOf } from './document.ts';
import { describeRoute, type FindSurface } from './route.ts';

export const DOCS_PATH = '/api/docs';
/** The script is part of this program, so it changes with it: a day is short enough to forget an old one. */
const SCRIPT_CACHEABLE = 'public, max-age=86400';

export interface DocsOptions {
  readonly publicUrl: string;
  readonly random: Random;
  readonly findSurface: FindSurface;
}

export const docsPlugin = fastifyPlugin<DocsOptions>(
  async (app, { publicUrl, random, findSurface }) => {
    await app.register(fastifySwagger, {
      openapi: documentOf(publicUrl),
      stripBasePath: false,
      transform: (route) => describeRoute(route, findSurface),
      // Parts that are one object in memory become aliases in YAML, and parsers bound how many of them they follow.
      transformObject: (built) =>
        'openapiObject' in built
          ? JSON.parse(JSON.stringify(completed(built.openapiObject, findSurface)))
          : built.swaggerObject,
    });

    for (const [format, contentType] of [
      ['json', 'application/json; charset=utf-8'],
      ['yaml', 'application/yaml; charset=utf-8'],
    ] as const) {
      app.get(`${DOCS_PATH}/openapi.${format}`, { schema: { hide: true } }, async (_request, reply) => {
        // Generators and other people's pages may read it.
        reply.header('access-control-allow-origin', '*').header('content-type', contentType);
        return reply.send(format === 'yaml' ? app.swagger({ yaml: true }) : JSON.stringify(app.swagger()));
      });
    }

    /** The page is the same for everybody and shows nothing of a request, so one nonce does for this process. */
    const nonce = Buffer.from(random(16)).toString('base64');
    const policy = pagePolicy(nonce);
    await app.register(scalar, {
      routePrefix: DOCS_PATH,
      hooks: {
        onRequest: async (request: FastifyRequest, reply: FastifyReply) => {
          if (request.url.startsWith(`${DOCS_PATH}/js/`)) reply.header('cache-control', SCRIPT_CACHEABLE);
          else reply.header('content-security-policy', policy);
        },
      },
      configuration: {
        url: `${DOCS_PATH}/openapi.json`,
        cdn: `${DOCS_PATH}/js/scalar.js`,
        pageTitle: 'Floodgate API',
        nonce,
        withDefaultFonts: false,
        telemetry: false,
        showDeveloperTools: 'never',
        hideClientButton: true,
        agent: { disabled: true },
        mcp: { disabled: true },
      },
    });
  },
  { name: 'docs', dependencies: ['http'] },
);

/** Styles are set by script all over the page; requests go to this service only. */
function pagePolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
  ].join('; ');
}
