/** Is the service there, and can it do its work? */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';

const Ready = Type.Object({ status: Type.String() });
const Unready = Type.Object({ status: Type.String(), problem: Type.String() });

export const healthRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  app.get('/health', { schema: { response: { 200: Type.Object({ status: Type.String() }) } } }, async () => ({
    status: 'ok',
  }));

  /** For load balancers and probes: 503 while the database cannot be written, with the reason. */
  app.get('/ready', { schema: { response: { 200: Ready, 503: Unready } } }, async (_request, reply) => {
    const problem = await context.health.check(context.db);
    if (problem === null) return { status: 'ready' };
    return reply.code(503).send({ status: 'unavailable', problem });
  });
};
