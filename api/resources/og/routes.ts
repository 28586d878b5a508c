/**
 * The Open Graph image of a survey, for link previews.
 *
 * Callers: anybody, limited by `api.client`.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { binary, media } from '#api/http/media.ts';
import { drawing, readColor, readName } from './drawing.ts';
import { createImages } from './images.ts';

const CACHEABLE = 'public, s-maxage=600, max-age=1800, stale-while-revalidate=600, stale-if-error=600';

const Query = Type.Object({
  name: Type.Optional(Type.String({ description: 'Name of the survey; what does not fit is cut' })),
  brandColor: Type.Optional(
    Type.String({
      description: 'Hexadecimal colour, such as #64748b; anything else means the default colour',
    }),
  ),
});

export const ogRoutes: Routes = async (app) => {
  const images = createImages();

  app.get(
    '/api/v1/client/og',
    { schema: { querystring: Query, response: { 200: media('image/png', binary, 'The image.') } } },
    async (request, reply) => {
      const { name = '', brandColor = '' } = request.query;
      const png = await images.png(drawing(readName(name), readColor(brandColor)));
      reply.header('content-type', 'image/png').header('cache-control', CACHEABLE).send(png);
      return reply;
    },
  );
};
