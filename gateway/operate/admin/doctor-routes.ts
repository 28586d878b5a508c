/** `GET /api/doctor`: the gateway's report on its set-up; `POST /api/doctor/probe`: a token that marks a request. */
import type { FastifyInstance } from 'fastify';
import { Digester } from '#gateway/identity/digest.ts';
import type { MatchReport } from '#gateway/observe/traffic.ts';
import { gatewayReport } from '#gateway/operate/doctor/report.ts';
import { probeToken } from '#gateway/request/probe.ts';
import type { AdminContext } from './context.ts';

export async function doctorRoutes(app: FastifyInstance, options: AdminContext): Promise<void> {
  const { doctor, clock, trust, policies, policyText, policyRefusal, control, processes } = options;
  const matches = async (): Promise<MatchReport[]> => (await processes()).map(({ matches }) => matches);
  app.get('/doctor', async () =>
    gatewayReport({
      ...doctor,
      clock,
      trust,
      control,
      matches,
      policyText,
      policyRefusal,
      policies: policies(),
    }),
  );
  app.post('/doctor/probe', async () => ({ token: probeToken(new Digester(await control.salt()), clock()) }));
}
