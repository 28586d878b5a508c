/** The gateway inside Fastify. */
import type { FastifyPluginCallback } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import type { InnerGateway } from './inner-gateway.ts';

/**
 * A plugin that limits every route registered after it, the routes of other plugins included. The gateway is closed with
 * the application.
 */
export function createFastifyPlugin(gateway: InnerGateway): FastifyPluginCallback {
  const plugin: FastifyPluginCallback = (app, _options, done) => {
    app.addHook('onRequest', async (request, reply) => {
      if (!(await gateway.limit(request.raw, reply.raw))) reply.hijack();
    });
    app.addHook('onClose', () => gateway.close());
    done();
  };
  return fastifyPlugin(plugin, { name: 'floodgate', fastify: '>=4' });
}
