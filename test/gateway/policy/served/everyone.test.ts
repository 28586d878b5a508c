/** `identifier: everyone` on running gateways: one counter for all clients, over all processes. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { recordedOf } from '#test/support/recorded.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = policyFile(
  'name: all, route: "GET /all", identifier: everyone, limit: 5, window: 366d',
  'name: fair, route: "GET /fair", identifier: ip, limits: [{ limit: 3, window: 366d }, { limit: 7, window: 366d, identifier: everyone }]',
  'name: open, route: "GET /open", identifier: everyone, concurrency: 2',
);

t.test('all clients share one counter', async (t) => {
  await insideLongWindow();
  await onEachStore(t, { policies: FILE, env: BEHIND_PROXY }, async (t, one, two) => {
    const ask = (i: number, path: string) =>
      send((i % 2 === 0 ? one : two).port, path, { headers: { 'x-forwarded-for': `192.0.2.${i}` } });

    const replies = await Promise.all(Array.from({ length: 40 }, (_, i) => ask(i, '/all')));
    t.equal(replies.filter(({ status }) => status === 200).length, 5, 'exactly the limit at once');
    const denied = await ask(99, '/all');
    t.equal(denied.status, 429, 'a new client is denied too');
    t.match(denied.headers['ratelimit-policy'], '"all";q=5;w=31622400');

    const loud = await Promise.all(Array.from({ length: 12 }, () => ask(1, '/fair')));
    t.equal(loud.filter(({ status }) => status === 200).length, 3, 'a client has its own limit too');
    const others = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i + 2, '/fair')));
    t.equal(
      others.filter(({ status }) => status === 200).length,
      4,
      'the loud client’s denied requests are not counted',
    );
    const last = JSON.parse((await ask(50, '/fair')).body.toString());
    t.strictSame(last['violated-policies'], ['fair.everyone.366d']);

    const refused = replies.filter(({ status }, i) => status === 429 && i % 2 === 0);
    t.match(await recordedOf(one.gateway, refused), {
      policy: 'all',
      used: 5,
      limit: 5,
      identifier: 'everyone',
    });
  });
});

t.test('limits the requests in flight of all clients together', async (t) => {
  const waiting: (() => void)[] = [];
  const arrived: (() => void)[] = [];
  const upstream = await startUpstream(t, (_, res) => {
    waiting.push(() => res.end('done'));
    arrived.shift()?.();
  });
  const { port } = await startTestGateway(t, { upstream, policies: FILE, env: BEHIND_PROXY });
  const ask = (client: number) =>
    send(port, '/open', { headers: { 'x-forwarded-for': `192.0.2.${client}` } });
  const both = Promise.all([1, 2].map(() => new Promise<void>((resolve) => arrived.push(resolve))));
  const held = [ask(1), ask(2)];
  await both;
  t.equal((await ask(3)).status, 429, 'a third client is denied');
  for (const answer of waiting) answer();
  t.strictSame(
    (await Promise.all(held)).map(({ status }) => status),
    [200, 200],
  );
});
