/**
 * Serves the SDK scripts at the paths of Formbricks. The scripts are not part of this service: an operator puts them
 * into the folder SDK_PATH. Until then the reply is a script that prints an explanation on the browser's console,
 * because a browser does not show the body of an error.
 *
 * Callers: anybody.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { notFound } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { media, withoutBody } from '#api/http/media.ts';

/** Names of the scripts, and of the npm packages that contain them. */
const packages: ReadonlyMap<string, string> = new Map([
  ['formbricks.umd.cjs', '@formbricks/js'],
  ['surveys.umd.cjs', '@formbricks/surveys'],
]);

/** Other paths of the scripts, which older clients use. */
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
    'The script. If it is not in `SDK_PATH`, a script that reports this on the console.',
  ),
  304: withoutBody('Not changed since the reply whose `etag` came as `if-none-match`.'),
};
const CACHEABLE = 'public, max-age=3600, s-maxage=2592000, stale-while-revalidate=3600, stale-if-error=86400';

export const scriptRoutes: Routes = async (app, { context }) => {
  const { sdkScripts } = context;

  app.get(
    '/js/:script',
    {
      schema: {
        summary: 'Read a script of the SDK',
        params: Type.Object({ script: Type.String() }),
        response,
      },
    },
    async (request, reply) => send(request, reply, request.params.script),
  );
  for (const [url, name] of Object.entries(aliases)) {
    app.get(
      url,
      { schema: { summary: 'Read a script of the SDK (older clients)', response } },
      async (request, reply) => send(request, reply, name),
    );
  }

  function send(request: FastifyRequest, reply: FastifyReply, name: string): FastifyReply {
    // Pages of other origins load the scripts, and may also see why there is none.
    reply.header('access-control-allow-origin', '*');
    const script = sdkScripts?.get(name);
    if (script === undefined) {
      if (!packages.has(name)) throw notFound('file', name);
      return reply.header('content-type', 'text/javascript; charset=utf-8').send(explanation(name));
    }
    reply
      .header('cache-control', CACHEABLE)
      .header('etag', script.etag)
      .header('content-type', 'text/javascript; charset=utf-8');
    if (matchesEtag(request.headers['if-none-match'], script.etag)) return reply.code(304).send();
    return reply.send(script.text);
  }

  function explanation(name: string): string {
    const what =
      sdkScripts === null
        ? `This service does not bundle the SDK. Its operator has to put ${name} of the npm package ${packages.get(name)} into a folder, set SDK_PATH to the folder, and restart the API`
        : `The folder SDK_PATH of the API has no ${name}. Put the one of the npm package ${packages.get(name)} there, and restart the API`;
    return `console.error(${JSON.stringify(`Surveys cannot be shown on this page. ${what}.`)});\n`;
  }
};
