/**
 * The SDK scripts, where pages that use the original product look for them. They are not part of this service: an
 * operator puts them into the folder SDK_PATH. Until then a script is answered that tells the owner of the page on the
 * browser's console; an error would be hidden there.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { notFound } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { media, withoutBody } from '#api/http/media.ts';

/** The two that pages ask for, with the npm package that brings each. */
const packages: ReadonlyMap<string, string> = new Map([
  ['formbricks.umd.cjs', '@formbricks/js'],
  ['surveys.umd.cjs', '@formbricks/surveys'],
]);

/** Addresses of older clients. */
const aliases: Readonly<Record<string, string>> = {
  '/api/packages/js': 'formbricks.umd.cjs',
  '/api/packages/app': 'formbricks.umd.cjs',
  '/api/packages/website': 'formbricks.umd.cjs',
  '/api/packages/surveys': 'surveys.umd.cjs',
};

const response = {
  200: media(
    'text/javascript',
    Type.String(),
    'The script; where there is none, one that says so on the console.',
  ),
  304: withoutBody('Not changed since the reply whose `etag` came as `if-none-match`.'),
};
const CACHEABLE = 'public, max-age=3600, s-maxage=2592000, stale-while-revalidate=3600, stale-if-error=86400';

export const scriptRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { sdkScripts } = context;

  app.get(
    '/js/:script',
    {
      schema: { params: Type.Object({ script: Type.String() }), response },
      config: { refuses: ['not_found'] },
    },
    async (request, reply) => send(request, reply, request.params.script),
  );
  for (const [url, name] of Object.entries(aliases)) {
    app.get(url, { schema: { response } }, async (request, reply) => send(request, reply, name));
  }

  function send(request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply {
    // Scripts are asked for by pages of other origins, which may also see why there is none.
    reply.header('access-control-allow-origin', '*');
    const script = sdkScripts?.get(name);
    if (script === undefined) {
      if (!packages.has(name)) throw notFound('file', name);
      return reply.header('content-type', 'text/javascript; charset=utf-8').send(explanation(name));
    }
    reply
      .header('cache-control', CACHEABLE)
      // Weak: plain and compressed are two forms of one script.
      .header('etag', `W/${script.etag}`)
      .header('vary', 'accept-encoding')
      .header('content-type', 'text/javascript; charset=utf-8');
    if (matchesEtag(request.headers['if-none-match'], script.etag)) return reply.code(304).send();
    if (!takesGzip(request.headers['accept-encoding'])) return reply.send(script.text);
    return reply.header('content-encoding', 'gzip').send(script.gzipped);
  }

  function explanation(name: string): string {
    const what =
      sdkScripts === null
        ? `This service does not bundle the SDK. Whoever runs it has to put ${name} of the npm package ${packages.get(name)} into a folder, set SDK_PATH to the folder, and restart the API`
        : `The folder SDK_PATH of the API has no ${name}. Put the one of the npm package ${packages.get(name)} there, and restart the API`;
    return `console.error(${JSON.stringify(`Surveys cannot be shown on this page. ${what}.`)});\n`;
  }
};

function takesGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .map((coding) => coding.split(';').map((part) => part.trim()))
    .some(([name, weight = '']) => name === 'gzip' && !/^q=0(?:\.0*)?$/.test(weight));
}
