/**
 * Health checks, which are never limited.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';

const Well = Type.Object({ status: Type.String() });
const Unwell = Type.Object({ status: Type.String(), problem: Type.String() });
const response = { 200: Well, 503: Unwell };

export const healthRoutes: Routes = async (app, { context: { db, health } }) => {
  // Requests on open connections are still answered, but a load balancer should send no new ones.
  let isDraining = false;
  app.addHook('preClose', async () => {
    isDraining = true;
  });

  /** 503 while the service stops or cannot reach its database. */
  app.get(
    '/health',
    { schema: { summary: 'Check that the process runs', response } },
    async (_request, reply) => {
      const problem = isDraining ? 'draining' : (await health.isReached(db)) ? null : 'database_unreachable';
      if (problem === null) return { status: 'ok' };
      return reply.code(503).send({ status: 'unavailable', problem });
    },
  );

  /** 503 while the service stops or cannot reach its database, and while the database cannot be written. */
  app.get(
    '/ready',
    { schema: { summary: 'Check that the service is ready for requests', response } },
    async (_request, reply) => {
      const problem = isDraining ? 'draining' : await health.check(db);
      if (problem === null) return { status: 'ready' };
      return reply.code(503).send({ status: 'unavailable', problem });
    },
  );
};

export const v2HealthRoutes: Routes = async (app, { context }) => {
  /** Always 200. A dependency that fails is reported as false. */
  app.get(
    '/api/v2/health',
    {
      config: { credentials: null, limit: null },
      schema: {
        summary: 'Check what the service depends on',
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
          // Without REDIS_URL the counters are in this process, so they are always up.
          cache_database: context.counters.isUp(),
          ...(problem === null ? {} : { main_database_problem: problem }),
        },
      };
    },
  );
};
