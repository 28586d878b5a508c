/** `GET /api/doctor`: the gateway's report on its set-up; `POST /api/doctor/probe`: a token that marks a request. */
import type { FastifyInstance } from 'fastify';
import { Digester } from '#gateway/identity/digest.ts';
import { gatewayReport } from '#gateway/operate/doctor/report.ts';
import { probeToken } from '#gateway/request/probe.ts';
import type { AdminContext } from './context.ts';
import { doctorSchema, probeSchema, refusals } from './reply-schemas.ts';

export async function doctorRoutes(app: FastifyInstance, options: AdminContext): Promise<void> {
  const { doctor, clock, trust, policies, policyText, policyRefusal, control } = options;
  app.get(
    '/doctor',
    { schema: { summary: 'What does the gateway know of its own set-up?', response: { 200: doctorSchema } } },
    async () =>
      gatewayReport({ ...doctor, clock, trust, control, policyText, policyRefusal, policies: policies() }),
  );
  app.post(
    '/doctor/probe',
    {
      schema: {
        summary: 'A token that marks a request of the doctor for a minute',
        response: { 200: probeSchema, ...refusals(415, 503) },
      },
    },
    async () => ({ token: probeToken(new Digester(await control.salt()), clock()) }),
  );
}
