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

t.test('other requests are served while it is made', async (t) => {
  let perTurn = 0;
  let most = 0;
  let all = 0;
  subscribe('fastify.initialization', (message) => {
    if (!isRecord(message)) return;
    const app = message.fastify as FastifyInstance;
    app.addHook('onRoute', (route) => {
      if (route.method === 'HEAD' || route.method === 'OPTIONS' || !route.url.startsWith('/api/v')) return;
      const swaggerTransform = (described: Parameters<typeof describeRoute>[0]) => {
        perTurn += 1;
        all += 1;
        most = Math.max(most, perTurn);
        return describeRoute(described, surfaceOf(described.url));
      };
      route.config = { ...route.config, swaggerTransform };
    });
  });
  const api = await startApi(t);
  let isDone = false;
  const turn = (): void => {
    perTurn = 0;
    if (!isDone) setImmediate(turn);
  };
  turn();
  await api.client('GET', '/api/docs/openapi.json');
  isDone = true;
  t.ok(all > 100, `${all} routes`);
  t.ok(most <= 12, `at most ${most} in one turn of the event loop`);
});
