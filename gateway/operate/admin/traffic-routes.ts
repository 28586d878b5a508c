/** Totals, the traffic of the last hour, and a stream of new events. */
import type { FastifyInstance } from 'fastify';
import type { Millis } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { AdminError } from './errors.ts';
import { isBearer, sessionOf } from './guard.ts';
import { TrafficHistory } from './history.ts';
import { LISTENERS_MAX, LiveFeed, type LiveFeedOptions } from './live-feed.ts';
import { refusals, topSchema, trafficSchema } from './reply-schemas.ts';
import { topSnapshot } from './top.ts';

interface TrafficRoutesOptions extends AdminContext, Pick<LiveFeedOptions, 'policyVersion'> {}

/** The processes keep the counts of a minute, see Seconds. */
const NOTE_MS: Millis = 15_000;

export async function trafficRoutes(app: FastifyInstance, options: TrafficRoutesOptions): Promise<void> {
  const { clock, top, token, sessions, marks, policies, policyRefusal } = options;
  const history = new TrafficHistory(clock);
  const seeState = (storeAwaySince: string | null): void =>
    marks.see({ policyVersion: policies().version, policyRefusal: policyRefusal(), storeAwaySince });
  const feed = new LiveFeed({ ...options, history, seeState });
  const timer = setInterval(() => void feed.look(), NOTE_MS).unref();
  app.addHook('preClose', async () => {
    clearInterval(timer);
    feed.close();
  });

  app.get('/top', { schema: { summary: 'Totals since the start', response: { 200: topSchema } } }, async () =>
    topSnapshot(top, clock()),
  );

  app.get(
    '/traffic',
    { schema: { summary: 'The last hour, by policy', response: { 200: trafficSchema } } },
    async () => {
      await feed.look();
      return { ...history.traffic(), marks: marks.list };
    },
  );

  app.get(
    '/live',
    {
      schema: {
        summary: 'The last hour, and then the changes of every second, as server-sent events',
        response: { 200: { type: 'string', mediaType: 'text/event-stream' }, ...refusals(503) },
      },
    },
    async (request, reply) => {
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
    },
  );
}
