/**
 * The Open Graph image of a survey, for link previews. Every survey has the same one.
 *
 * Callers: anybody, limited by `api.client`.
 */
import { readFileSync } from 'node:fs';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { binary, media } from '#api/http/media.ts';

const CACHEABLE = 'public, s-maxage=600, max-age=1800, stale-while-revalidate=600, stale-if-error=600';
/** A PNG of 800 by 400. */
const PREVIEW = readFileSync(new URL('./preview.png', import.meta.url));

const Query = Type.Object({
  name: Type.Optional(Type.String({ description: 'Name of the survey; ignored' })),
  brandColor: Type.Optional(Type.String({ description: 'Colour of the brand; ignored' })),
});

export const ogRoutes: Routes = async (app) => {
  app.get(
    '/api/v1/client/og',
    {
      schema: {
        summary: 'Read the preview image of a survey, 800 by 400',
        querystring: Query,
        response: { 200: media('image/png', binary, 'The image.') },
      },
    },
    async (_, reply) => {
      reply.header('content-type', 'image/png').header('cache-control', CACHEABLE).send(PREVIEW);
      return reply;
    },
  );
};
