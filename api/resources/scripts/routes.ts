/**
 * Serves the SDK scripts at the paths of Formbricks. They are not part of this service: an operator puts them into the
 * folder SDK_PATH, which is read once. So a request names a script and never a path.
 *
 * Callers: anybody.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { existing } from '#api/errors.ts';
import { matchesEtag } from '#api/http/conditional.ts';
import { media, withoutBody } from '#api/http/media.ts';
import { ConfigError } from '#shared/configuration.ts';

const names = ['formbricks.umd.cjs', 'surveys.umd.cjs'];
const CACHEABLE = 'public, max-age=3600, s-maxage=2592000, stale-while-revalidate=3600, stale-if-error=86400';

export const scriptRoutes: Routes = async (app, { context }) => {
  const scripts = await readScripts(context.config.sdkPath);

  app.get(
    '/js/:script',
    {
      schema: {
        summary: 'Read a script of the SDK',
        params: Type.Object({ script: Type.String() }),
        response: {
          200: media('text/javascript', Type.String(), 'The script.'),
          304: withoutBody('Not changed since the reply whose `etag` came as `if-none-match`.'),
        },
      },
    },
    async (request, reply) => {
      const name = request.params.script;
      // Pages of other origins load the scripts, and may also see why there is none.
      reply.header('access-control-allow-origin', '*');
      const { etag, text } = existing(scripts.get(name) ?? null, 'file', name);
      reply
        .header('cache-control', CACHEABLE)
        .header('etag', etag)
        .header('content-type', 'text/javascript; charset=utf-8');
      if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send();
      return reply.send(text);
    },
  );
};

/** @throws ConfigError if the folder lacks one of them */
async function readScripts(
  folder: string | null,
): Promise<ReadonlyMap<string, { readonly text: Buffer; readonly etag: string }>> {
  if (folder === null) return new Map();
  try {
    const read = names.map(async (name) => {
      const text = await readFile(join(folder, name));
      return [name, { text, etag: `"${createHash('sha256').update(text).digest('base64url')}"` }] as const;
    });
    return new Map(await Promise.all(read));
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`SDK_PATH: ${problem}; put ${names.join(' and ')} into the folder`]);
  }
}
