/** The admin listener: apart from the public port, so that nobody outside reaches it by a path. */
import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify, { type FastifyInstance, type onRequestHookHandler } from 'fastify';
import { prometheusContentType } from 'prom-client';
import { decisionsRoutes } from './admin/decisions-routes.ts';
import type { DecisionRecord } from './decisions/decision-record.ts';
import { exposition, type Family } from './exposition.ts';

export interface AdminOptions {
  readonly ready: () => boolean;
  readonly storeAvailable: () => Promise<boolean>;
  /** Of each process. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
  /** @throws when the store cannot be asked */
  readonly findDecision: (id: string) => Promise<DecisionRecord | null>;
  /** Asked for by all but /healthz and /readyz; null: nobody is asked. */
  readonly token: string | null;
}

export function buildAdmin(options: AdminOptions): FastifyInstance {
  const app = Fastify({ forceCloseConnections: true });
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    if (!options.ready()) return reply.code(503).send({ status: 'not ready' });
    // Without its store the gateway still decides, by each policy's onStoreFailure: it stays in rotation and says so.
    return { status: 'ready', store: (await options.storeAvailable()) ? 'available' : 'unavailable' };
  });
  const onRequest = askForToken(options.token);
  app.get('/metrics', { onRequest }, async (_request, reply) => {
    return reply.type(prometheusContentType).send(await exposition(await options.families()));
  });
  app.register(async (scope) => {
    scope.addHook('onRequest', onRequest);
    await scope.register(decisionsRoutes, options);
  });
  app.setNotFoundHandler(async (_request, reply) =>
    reply
      .code(404)
      .send({ message: 'the admin listener has /healthz, /readyz, /metrics and /api/decisions/ID' }),
  );
  return app;
}

function askForToken(token: string | null): onRequestHookHandler {
  return async (request, reply) => {
    if (token === null || isBearer(request.headers.authorization, token)) return;
    await reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send({ message: 'send GATEWAY_ADMIN_TOKEN as Bearer token' });
  };
}

function isBearer(authorization: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}
