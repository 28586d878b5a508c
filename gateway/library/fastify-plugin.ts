/** Fastify plugin of the library. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import fastifyPlugin from 'fastify-plugin';
import type { InnerGateway } from './inner-gateway.ts';

type OnRequest = (
  request: { readonly raw: IncomingMessage },
  reply: { readonly raw: ServerResponse; hijack(): unknown },
) => Promise<void>;

/** The used part of a Fastify application. Declared here, so that programs without Fastify compile too. */
interface Application {
  addHook(name: 'onRequest', hook: OnRequest): unknown;
  addHook(name: 'onClose', hook: () => Promise<void>): unknown;
}

type FastifyPlugin = (app: Application, options: unknown, done: (error?: Error) => void) => void;

/**
 * Creates a plugin that limits all routes registered after it, also those of other plugins. It closes the gateway with
 * the app.
 */
export function createFastifyPlugin(gateway: InnerGateway): FastifyPlugin {
  const plugin: FastifyPlugin = (app, _options, done) => {
    app.addHook('onRequest', async (request, reply) => {
      if (!(await gateway.limit(request.raw, reply.raw))) reply.hijack();
    });
    app.addHook('onClose', () => gateway.close());
    done();
  };
  return fastifyPlugin(plugin, { name: 'floodgate', fastify: '>=4' });
}
