/** The admin API, for the command line and the page. Every change is logged. */
import { hash } from 'node:crypto';
import type { FastifyError, FastifyInstance } from 'fastify';
import { ControlUnavailableError, TooManyChangesError } from '#gateway/bans/control.ts';
import { clientRoutes } from './client-routes.ts';
import type { AdminApiOptions, AdminContext } from './context.ts';
import { decisionsRoutes } from './decisions-routes.ts';
import { doctorRoutes } from './doctor-routes.ts';
import { guard, sessionOf } from './guard.ts';
import { policyRoutes } from './policy-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { Sessions } from './sessions.ts';
import { trafficRoutes } from './traffic-routes.ts';

export function addAdminApi(app: FastifyInstance, options: AdminApiOptions): void {
  app.register(async (api) => addRoutes(api, options), { prefix: '/api' });
}

async function addRoutes(api: FastifyInstance, options: AdminApiOptions): Promise<void> {
  const { log, policies, policyRefusal, control } = options;
  const sessions = new Sessions(options);
  const context = { ...options, sessions, audit: auditTo(options, sessions) };
  guard(api, options, sessions);
  api.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
  });
  api.setErrorHandler(async (error: FastifyError, _request, reply) => {
    const status = statusOf(error);
    if (status === 500) log.error(error, 'the admin API failed');
    const message = status === 500 ? 'a mistake in the gateway; its log has the details' : error.message;
    return reply.code(status).send({ message });
  });

  api.register(decisionsRoutes, context);
  api.register(doctorRoutes, context);
  api.register(clientRoutes, context);
  api.register(policyRoutes, context);
  api.register(sessionRoutes, context);
  api.register(trafficRoutes, {
    ...context,
    policyVersion: async () => {
      // During an outage of the store the shadow modes are unknown. The version must show that as a separate state.
      const known = await control.shadows().catch(() => null);
      const shadows = known === null ? 'unknown' : [...known].flat().join(' ');
      return hash('sha256', `${policies().version} ${policyRefusal()} ${shadows}`).slice(0, 16);
    },
  });
}

function auditTo({ log, token }: AdminApiOptions, sessions: Sessions): AdminContext['audit'] {
  return (request, change, what) => {
    const { ip } = request;
    const session = token === null ? null : sessionOf(request, sessions);
    const who = session === null ? `token, from ${ip}` : `session ${session.name}, from ${ip}`;
    log.info({ by: token === null ? ip : who, change, ...what }, 'admin change');
  };
}

function statusOf(error: FastifyError): number {
  if (error instanceof ControlUnavailableError) return 503;
  if (error instanceof TooManyChangesError) return 409;
  const { statusCode = 500 } = error;
  return statusCode < 500 || statusCode === 503 ? statusCode : 500;
}
