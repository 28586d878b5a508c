/** These routes tell what the gateway does and how it is set up: totals, a stream that begins with the last hour, and doctor's questions. */
import type { FastifyInstance } from 'fastify';
import { Digester } from '#gateway/identity/digest.ts';
import { probeToken } from '#gateway/request/probe.ts';
import type { AdminContext } from './context.ts';
import { gatewayReport } from './doctor-report.ts';
import { isBearer, sessionOf } from './guard.ts';
import { TrafficHistory } from './history.ts';
import { AdminError } from './input.ts';
import { LISTENERS_MAX, LiveFeed } from './live-feed.ts';
import { topSnapshot } from './top.ts';

export function stateRoutes(app: FastifyInstance, context: AdminContext): void {
  const { clock, token, sessions, policies, policyRefusal, control } = context;
  const policyVersion = async (): Promise<string> => {
    // During an outage of the store the shadow modes are unknown. The version must show that as a separate state.
    const known = await control.shadows().catch(() => null);
    return [policies().version, policyRefusal(), ...(known === null ? ['unknown'] : [...known].flat())].join(
      ' ',
    );
  };
  const history = new TrafficHistory(clock());
  const feed = new LiveFeed({ ...context, history, policyVersion });
  feed.schedule();
  app.addHook('preClose', async () => feed.close());

  app.get('/top', async () => topSnapshot(context, clock(), history.since));

  app.get('/live', async (request, reply) => {
    if (feed.size >= LISTENERS_MAX)
      throw new AdminError(503, `${LISTENERS_MAX} pages are open already; close one`);
    const isProgram = token !== null && isBearer(request.headers.authorization, token);
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-accel-buffering': 'no',
    });
    await feed.add(reply.raw, () => token === null || isProgram || sessionOf(request, sessions) !== null);
  });

  app.get('/doctor', async () => gatewayReport(context));

  /** A token that marks a request of doctor. */
  app.post('/doctor/probe', async () => ({ token: probeToken(new Digester(await control.salt()), clock()) }));
}
