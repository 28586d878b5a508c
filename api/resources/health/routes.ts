/** Is the service there? */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';

export const healthRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (app) => {
  app.get('/health', { schema: { response: { 200: Type.Object({ status: Type.String() }) } } }, async () => ({
    status: 'ok',
  }));
};
