/** The admin listener: apart from the public port, so that nobody outside reaches it by a path. */
import { createHash, timingSafeEqual } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import { prometheusContentType } from 'prom-client';
import { exposition, type Family } from './exposition.ts';

export interface AdminOptions {
  readonly ready: () => boolean;
  readonly storeAvailable: () => Promise<boolean>;
  /** Of each process. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
  /** Asked for by /metrics; null: nobody is asked. */
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
  app.get('/metrics', async (request, reply) => {
    if (options.token !== null && !isBearer(request.headers.authorization, options.token)) {
      return reply
        .code(401)
        .header('www-authenticate', 'Bearer')
        .send({ message: 'send GATEWAY_ADMIN_TOKEN as Bearer token' });
    }
    return reply.type(prometheusContentType).send(await exposition(await options.families()));
  });
  app.setNotFoundHandler(async (_request, reply) =>
    reply.code(404).send({ message: 'the admin listener has /healthz, /readyz and /metrics' }),
  );
  return app;
}

function isBearer(authorization: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}
