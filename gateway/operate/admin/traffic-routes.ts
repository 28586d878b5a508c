/** Totals, and a stream of events that begins with the traffic of the last hour. */
import type { FastifyInstance } from 'fastify';
import type { AdminContext } from './context.ts';
import { AdminError } from './errors.ts';
import { isBearer, sessionOf } from './guard.ts';
import { TrafficHistory } from './history.ts';
import { LISTENERS_MAX, LiveFeed, type LiveFeedOptions } from './live-feed.ts';
import { topSnapshot } from './top.ts';

interface TrafficRoutesOptions extends AdminContext, Pick<LiveFeedOptions, 'policyVersion'> {}

export async function trafficRoutes(app: FastifyInstance, options: TrafficRoutesOptions): Promise<void> {
  const { clock, token, sessions } = options;
  const history = new TrafficHistory(clock());
  const feed = new LiveFeed({ ...options, history });
  feed.start();
  app.addHook('preClose', async () => feed.close());

  app.get('/top', async () => topSnapshot(options, clock(), history.since));

  app.get('/live', async (request, reply) => {
    if (feed.isFull) throw new AdminError(503, `${LISTENERS_MAX} pages are open already; close one`);
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
}
