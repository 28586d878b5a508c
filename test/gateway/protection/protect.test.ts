/** `protect` and `priority` on running gateways, in front of an application whose latency the test chooses. */
import t from 'tap';
import type { Answer } from '#test/gateway/proxy/exchange.ts';
import { until } from '#test/support/until.ts';
import { CLIENTS, MAX, startFull, startWorld } from './world.ts';

for (const parser of ['1', '0']) {
  t.test(`on, with GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const world = await startWorld(t, 'on', { GATEWAY_OWN_PARSER: parser });
    const { application, clock } = world;
    await world.learn();
    t.equal(world.limit, MAX);
    await world.overload();
    t.equal(world.limit, 12, 'half of the 24 requests in progress');

    const first = CLIENTS.flatMap((from) => [1, 2, 3].map(() => world.get('/page', from)));
    await application.arrived(12);
    t.equal(world.sample('floodgate_held', { bound: 'upstream_connections' }), 12);
    const send = async (
      path: string,
      priority: string,
      from: string,
    ): Promise<{ answer: Promise<Answer> }> => {
      const before = world.waiting(priority);
      const answer = world.get(path, from);
      await until(() => world.waiting(priority) === before + 1, `${path} waits`);
      return { answer };
    };
    const waiting = [
      await send('/report', 'low', '192.0.2.9'),
      await send('/page?hog=1', 'normal', '192.0.2.7'),
      await send('/page?hog=2', 'normal', '192.0.2.7'),
      await send('/page?hog=3', 'normal', '192.0.2.7'),
      await send('/page?other', 'normal', '192.0.2.8'),
      await send('/login', 'high', '192.0.2.9'),
    ];
    const order: string[] = [];
    for (let i = 0; i < 6; i++) {
      application.answer(1);
      await application.arrived(12);
      order.push(application.paths.at(-1) ?? '');
    }
    t.strictSame(
      order,
      ['/login', '/page?hog=1', '/page?other', '/page?hog=2', '/page?hog=3', '/report'],
      'by priority, and clients take turns',
    );

    const late = [
      await send('/report', 'low', '192.0.2.9'),
      await send('/page', 'normal', '192.0.2.9'),
      await send('/login', 'high', '192.0.2.9'),
    ];
    const refusedNow = (): number[] =>
      ['low', 'normal', 'high'].map((priority) =>
        world.sample('floodgate_protect_refused_total', { priority }),
      );
    clock.advance(500);
    await until(() => refusedNow()[0] === 1);
    t.strictSame(refusedNow(), [1, 0, 0], 'low priority waits for half a second');
    clock.advance(500);
    await until(() => refusedNow()[1] === 1);
    t.strictSame(refusedNow(), [1, 1, 0], 'normal priority waits for a second');
    clock.advance(1000);
    const refused = await Promise.all(late.map(({ answer }) => answer));
    t.strictSame(refusedNow(), [1, 1, 1], 'high priority waits for two seconds');
    for (const [i, { status, headers, body }] of refused.entries()) {
      t.equal(status, 503);
      t.equal(headers['retry-after'], '1');
      t.match(JSON.parse(body.toString()), {
        type: /temporary-reduced-capacity$/,
        code: 'gateway_overloaded',
        details: { priority: ['low', 'normal', 'high'][i] },
      });
    }
    t.match(
      world.gateway.log.filter(({ msg }) => String(msg).includes('protect')),
      [{ limit: 12 }],
      'the log has one line',
    );
    const record = await world.gateway.gateway.findDecision(
      String(refused[0]?.headers['x-gateway-decision']),
    );
    t.match(record, { decision: 'busy', policy: 'protect', identifier: 'priority low', limit: 12, used: 12 });

    application.answer();
    for (const { answer } of waiting) t.equal((await answer).status, 200);
    for (const answer of first) t.equal((await answer).status, 200);
    await world.isFree(t);
    for (let i = 0; i < 40; i++) await world.load(CLIENTS, 1, 50);
    t.equal(world.limit, MAX, 'the limit is at its maximum after the overload');
  });
}

t.test('shadow mode measures, and refuses nothing', async (t) => {
  const world = await startWorld(t, 'shadow');
  const { application } = world;
  await world.learn();
  await world.overload();
  t.equal(world.limit, 12);
  const sent = CLIENTS.flatMap((from) => Array.from({ length: 6 }, () => world.get('/report', from)));
  await application.arrived(24);
  t.equal(world.sample('floodgate_protect_refused_total', { priority: 'low', mode: 'shadow' }), 12);
  application.answer();
  for (const answer of sent) t.equal((await answer).status, 200);
  await world.isFree(t);
});

t.test('in a full queue a request of a higher priority takes the place of a lower one', async (t) => {
  const { world, application, first } = await startFull(t, { GATEWAY_WAITING: '2' });
  const low = [world.get('/report', '192.0.2.7'), world.get('/report', '192.0.2.8')];
  await until(() => world.waiting('low') === 2);
  const normal = world.get('/page', '192.0.2.9');
  const high = world.get('/login', '192.0.2.9');
  t.strictSame(
    (await Promise.all(low)).map(({ status }) => status),
    [503, 503],
  );
  t.equal(world.waiting('normal') + world.waiting('high'), 2);
  t.equal((await world.get('/report', '192.0.2.7')).status, 503, 'a low priority takes no place');
  application.answer();
  await application.arrived(2);
  application.answer();
  for (const answer of [...first, normal, high]) t.equal((await answer).status, 200);
  await world.isFree(t);
});

t.test('clients that leave give everything back', async (t) => {
  const world = await startWorld(t, 'on');
  const { application, clock } = world;
  await world.learn();
  await world.overload();
  const leaving = new AbortController();
  let next = 1;
  const get = (): Promise<unknown> =>
    fetch(`${world.gateway.origin}/page`, {
      signal: leaving.signal,
      headers: { 'x-forwarded-for': `192.0.2.${next++}` },
    }).catch(() => undefined);
  const sent = Array.from({ length: 30 }, get);
  await until(() => application.held.length === 12 && world.waiting('normal') === 18);
  clock.advance(400);
  leaving.abort();
  await Promise.all(sent);
  application.held.splice(0);
  await world.isFree(t);
  t.equal(world.waiting('normal'), 0);
});

t.test('a long poll gives its place back, and those of one client do not lower the limit', async (t) => {
  const { world, application, first: polls } = await startFull(t, {}, '/page?poll');
  const { clock } = world;
  const next = world.get('/page', '192.0.2.9');
  await until(() => world.waiting('normal') === 1);
  // Its own wait must not end first.
  clock.advance(900);
  await world.application.arrived(12);
  t.equal(world.waiting('normal'), 1);
  application.answer(1);
  await application.arrived(12);
  clock.advance(5000);
  await until(() => world.sample('floodgate_held', { bound: 'streams' }) === 12);
  t.equal(world.sample('floodgate_held', { bound: 'upstream_connections' }), 0);
  const more = CLIENTS.map((from) => world.get('/page', from));
  await application.arrived(16);
  application.answer();
  for (const answer of [...polls, ...more, next]) t.equal((await answer).status, 200);
  await world.isFree(t);
});
