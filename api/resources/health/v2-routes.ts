/** Are the service and what it depends on there? Nobody needs a key to ask, and asking is never limited. */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';

export const v2HealthRoutes: Routes = async (app, { context }) => {
  /** A dependency that fails is reported as false; the reply stays 200. */
  app.get(
    '/api/v2/health',
    {
      config: { credentials: null, limit: null },
      schema: {
        response: {
          200: Type.Object({
            data: Type.Object({
              main_database: Type.Boolean(),
              cache_database: Type.Boolean(),
              main_database_problem: Type.Optional(Type.String()),
            }),
          }),
        },
      },
    },
    async () => {
      const problem = await context.health.check(context.db);
      return {
        data: {
          main_database: problem === null,
          // Without a REDIS_URL the counters live in this process, and are there as long as we are.
          cache_database: await context.limits.isStoreUp(),
          ...(problem === null ? {} : { main_database_problem: problem }),
        },
      };
    },
  );
};
