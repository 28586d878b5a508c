/**
 * Where the original product serves its SDK scripts. They are not part of this service, and a page that looks for
 * them here learns where they are.
 */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { ApiError } from '#api/errors.ts';

const packageOf: Readonly<Record<string, string>> = {
  '/js/formbricks.umd.cjs': '@formbricks/js',
  '/js/surveys.umd.cjs': '@formbricks/surveys',
  '/api/packages/js': '@formbricks/js',
  '/api/packages/app': '@formbricks/js',
  '/api/packages/website': '@formbricks/js',
  '/api/packages/surveys': '@formbricks/surveys',
};

export const scriptRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [url, name] of Object.entries(packageOf)) {
    app.get(url, async (_request, reply) => {
      // Scripts are asked for by pages of other origins, which may see why there is none.
      reply.header('access-control-allow-origin', '*');
      throw new ApiError(
        'not_found',
        `This service does not bundle SDK scripts; serve the one of the npm package ${name} yourself, and let it call this address`,
        { resource_id: url, resource_type: 'file' },
      );
    });
  }
};
