/** Are the service and what it depends on there? Nobody needs a key to ask, and asking is never limited. */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { sql } from 'kysely';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';

export const v2HealthRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  /** A dependency that fails is reported as false; the reply stays 200. */
  app.get(
    '/api/v2/health',
    {
      config: { credentials: null, limit: null },
      schema: {
        response: {
          200: Type.Object({
            data: Type.Object({ main_database: Type.Boolean(), cache_database: Type.Boolean() }),
          }),
        },
      },
    },
    async (request) => {
      const isDatabaseUp = await sql`select 1`.execute(context.db).then(
        () => true,
        (error: unknown) => {
          request.log.error({ err: error }, 'the database does not answer the health check');
          return false;
        },
      );
      // Without a REDIS_URL the counters live in this process, and are there as long as we are.
      return { data: { main_database: isDatabaseUp, cache_database: await context.limits.isStoreUp() } };
    },
  );
};
