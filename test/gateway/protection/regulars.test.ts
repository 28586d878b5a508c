/** `protect` and `newcomers` on a running gateway: while the application is slow, regulars go first. */
import t, { type Test } from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { historySinceKey } from '#gateway/limiter/replicas.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { newcomersOf } from '#gateway/operate/admin/top.ts';
import { DAY_MS } from '#gateway/policy/groups.ts';
import { policyFile } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { CLIENTS, startWorld, type World } from './world.ts';

const REGULAR = { 'x-api-key': 'fbk_regular' };

/** Starts a gateway whose lowered limit of 12 is used up, and which knows one key as a regular. */
async function startFull(t: Test, mode: string, protect = 'on'): Promise<World> {
  const redis = await startRedis(t);
  const { digest } = new Digester('salt of the tests').identify(EVERYONE, '');
  await redis.client.set(historySinceKey(digest), Math.floor(Date.now() / DAY_MS) - 7);
  const policies = `${policyFile(
    `name: pages, route: "GET /*", identifier: ip, limit: 100000, window: 1h, mode: ${mode}, newcomers: { limit: 100000, window: 1h }`,
  )}
regulars: { keys: [api-key] }`;
  const world = await startWorld(t, protect, { GATEWAY_REDIS_URL: redis.url }, policies);
  const { application } = world;
  await world.learn();
  const proving = world.get('/page', '192.0.2.1', REGULAR);
  await application.arrived(1);
  application.answer();
  t.equal((await proving).status, 200);
  await world.overload();
  t.equal(world.limit, 12);
  const first = CLIENTS.flatMap((from) => [1, 2, 3].map(() => world.get('/page', from)));
  await application.arrived(12);
  t.teardown(() => Promise.all(first));
  return world;
}

/** Returns what the page shows of newcomers. */
function shown({ gateway }: World): ReturnType<typeof newcomersOf> {
  return newcomersOf([families(gateway.gateway.samples())]);
}

t.test('regulars pass first, and some newcomers with them', async (t) => {
  const world = await startFull(t, 'enforce');
  const { application, clock } = world;
  const newcomers = Array.from({ length: 30 }, (_, i) => world.get('/page?newcomer', `198.51.100.${i}`));
  await until(() => world.waiting('normal') === 30);
  const regulars = Array.from({ length: 30 }, (_, i) =>
    world.get('/page?regular', `203.0.113.${i}`, REGULAR),
  );
  await until(() => world.waiting('normal') === 60);
  const order: string[] = [];
  for (let i = 0; i < 33; i++) {
    application.answer(1);
    await application.arrived(12);
    order.push(application.paths.at(-1) === '/page?regular' ? 'r' : 'n');
  }
  t.equal(order.join(''), `${'rrrrrrrrrn'.repeat(3)}rrr`);
  // The requests of newcomers that the application has not seen.
  const arrived = order.filter((who) => who === 'n').length;
  t.match(shown(world), { waiting: newcomers.length - arrived, overloaded: 0 });
  clock.advance(1000);
  await until(() => world.waiting('normal') === 0);
  application.answer();
  for (const answer of await Promise.all(regulars)) t.equal(answer.status, 200);
  const answers = await Promise.all(newcomers);
  t.equal(answers.filter(({ status }) => status === 200).length, 3);
  const refused = answers.find(({ status }) => status === 503);
  t.match(shown(world), {
    waiting: 0,
    overloaded: answers.filter(({ status }) => status === 503).length,
  });
  t.match(await world.gateway.gateway.findDecision(String(refused?.headers['x-gateway-decision'])), {
    policy: 'protect',
    identifier: 'priority normal as a newcomer',
  });
  await world.isFree(t);
});
