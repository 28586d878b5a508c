/** `GET /api/doctor`: what the gateway knows of its own set-up; `POST /api/doctor/probe`: a token that marks a request. */
import type { FastifyInstance } from 'fastify';
import { Digester } from '#gateway/identity/digest.ts';
import type { Control } from '#gateway/operate/control/control.ts';
import { type DoctorSources, gatewayReport } from '#gateway/operate/doctor/report.ts';
import type { PolicySet } from '#gateway/policy/policy.ts';
import { probeToken } from '#gateway/request/probe.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { doctorSchema, messageSchema, probeSchema } from './reply-schemas.ts';

export interface DoctorRoutesOptions {
  readonly doctor: DoctorSources;
  readonly clock: Clock;
  readonly trust: ProxyTrust;
  readonly policies: () => PolicySet;
  readonly control: Control;
}

/** For the admin API's scope, which asks who calls. */
export async function doctorRoutes(app: FastifyInstance, options: DoctorRoutesOptions): Promise<void> {
  const { doctor, clock, trust, policies, control } = options;
  app.get(
    '/doctor',
    { schema: { summary: 'What does the gateway know of its own set-up?', response: { 200: doctorSchema } } },
    async () => gatewayReport({ ...doctor, clock, trust, control, policies: policies() }),
  );
  app.post(
    '/doctor/probe',
    {
      schema: {
        summary: 'A token that marks a request of the doctor for a minute',
        response: { 200: probeSchema, 415: messageSchema, 503: messageSchema },
      },
    },
    async () => ({ token: probeToken(new Digester(await control.salt()), clock()) }),
  );
}
