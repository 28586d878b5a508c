/** The description is generated once, for its first reader. */
import { subscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { describeRoute } from '#api/docs/route.ts';
import { surfaceOf } from '#api/surfaces/surfaces.ts';
import { isRecord } from '#api/values/schemas.ts';
import { startApi } from '#test/support/api-app.ts';

const WATCHED = '/api/v1/management/me';

/** Counts how often a route is described. Fastify announces every new app, before anything is registered on it. */
let made = 0;
subscribe('fastify.initialization', (message) => {
  if (!isRecord(message)) return;
  const app = message.fastify as FastifyInstance;
  app.addHook('onRoute', (route) => {
    if (route.url !== WATCHED || route.method !== 'GET') return;
    const swaggerTransform = (described: Parameters<typeof describeRoute>[0]) => {
      made += 1;
      return describeRoute(described, surfaceOf(WATCHED));
    };
    route.config = { ...route.config, swaggerTransform };
  });
});

t.test(
  'creates the value for the first caller, not at the start, and once for concurrent callers',
  async (t) => {
    const api = await startApi(t);
    await api.app.listen({ host: '127.0.0.1', port: 0 });
    t.equal((await api.manage('GET', WATCHED)).status, 200);
    t.equal(made, 0);

    const ask = () => api.client('GET', '/api/docs/openapi.json');
    const [first, second] = await Promise.all([ask(), ask()]);
    t.ok(WATCHED in first.json.paths);
    t.equal(second.text, first.text);
    await ask();
    t.equal(made, 1);
  },
);
