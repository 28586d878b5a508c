/** The admin API: what the command line and the page ask a running gateway. Every change is logged: who, what, and whose digest. */
import { hash } from 'node:crypto';
import type { FastifyError, FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import {
  ControlUnavailableError,
  TooManyBansError,
  TooManyShadowsError,
} from '#gateway/operate/control/control.ts';
import type { Clock } from '#shared/clock.ts';
import { auditTo } from './audit.ts';
import { type ClientRoutesOptions, clientRoutes } from './client-routes.ts';
import { type DecisionsRoutesOptions, decisionsRoutes } from './decisions-routes.ts';
import { type DoctorRoutesOptions, doctorRoutes } from './doctor-routes.ts';
import { BadRequestError, NotFoundError, TooBusyError } from './errors.ts';
import { type GuardOptions, guard } from './guard.ts';
import type { DescribedRoute } from './openapi.ts';
import { type PolicyRoutesOptions, policyRoutes } from './policy-routes.ts';
import { type ReplayRoutesOptions, replayRoutes } from './replay-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { Sessions } from './sessions.ts';
import { SubjectError } from './subject.ts';
import type { TopSource } from './top.ts';
import { trafficRoutes } from './traffic-routes.ts';

export interface AdminApiOptions
  extends GuardOptions,
    DecisionsRoutesOptions,
    DoctorRoutesOptions,
    Omit<ClientRoutesOptions, 'audit'>,
    Omit<PolicyRoutesOptions, 'audit'>,
    Omit<ReplayRoutesOptions, 'audit'> {
  readonly log: Logger;
  readonly clock: Clock;
  /** Nobody can guess it; at least 32 bytes. */
  readonly newSecret: () => string;
  readonly top: TopSource;
}

export function addAdminApi(app: FastifyInstance, options: AdminApiOptions): void {
  app.register(async (api) => addRoutes(api, options), { prefix: '/api' });
}

async function addRoutes(api: FastifyInstance, options: AdminApiOptions): Promise<void> {
  const { log, token, clock, newSecret, policies, policyRefusal, control } = options;
  const sessions = new Sessions({ clock, newSecret });
  const audit = auditTo(log, token, sessions);
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

  const routes: DescribedRoute[] = [];
  api.addHook('onRoute', (route) => void routes.push(route));
  api.register(decisionsRoutes, options);
  api.register(doctorRoutes, options);
  api.register(clientRoutes, { ...options, audit });
  api.register(policyRoutes, { ...options, audit });
  api.register(replayRoutes, { ...options, audit });
  api.register(sessionRoutes, { ...options, sessions });
  api.register(trafficRoutes, {
    ...options,
    sessions,
    policyVersion: async () => {
      // While the store is away nobody can say which they are, and that is news as well.
      const known = await control.shadows().catch(() => null);
      const shadows = known === null ? 'unknown' : [...known].flat().join(' ');
      return hash('sha256', `${policies().version} ${policyRefusal()} ${shadows}`).slice(0, 16);
    },
  });
  api.get('/openapi.json', async () => {
    const { openapiOf } = await import('./openapi.ts');
    return openapiOf(routes);
  });
}

function statusOf(error: FastifyError): number {
  if (error instanceof SubjectError || error instanceof BadRequestError) return 400;
  if (error instanceof NotFoundError) return 404;
  if (error instanceof ControlUnavailableError || error instanceof TooBusyError) return 503;
  if (error instanceof TooManyBansError || error instanceof TooManyShadowsError) return 409;
  const { statusCode = 500 } = error;
  return statusCode < 500 || statusCode === 503 ? statusCode : 500;
}
