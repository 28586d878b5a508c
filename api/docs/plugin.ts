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
import { describeRoute } from './route.ts';
import { toYaml } from './yaml.ts';

export const DOCS_PATH = '/api/docs';
/** The script is part of this program, so it changes with it: a day is short enough to forget an old one. */
const SCRIPT_CACHEABLE = 'public, max-age=86400';

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

    /** Made once: it takes a while, in which no request is answered. */
    const texts = new Map<string, string>();
    const textOf = (format: Format): string => {
      const known = texts.get(format);
      if (known !== undefined) return known;
      const made = format === 'yaml' ? toYaml(app.swagger()) : JSON.stringify(app.swagger());
      texts.set(format, made);
      return made;
    };
    // Before anybody waits for a reply.
    app.addHook('onListen', async () => void textOf('json'));
    for (const format of formats) {
      app.get(`${DOCS_PATH}/openapi.${format}`, { schema: { hide: true } }, async (_request, reply) => {
        // Generators and other people's pages may read it.
        reply.header('access-control-allow-origin', '*');
        return reply.header('content-type', `application/${format}; charset=utf-8`).send(textOf(format));
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
