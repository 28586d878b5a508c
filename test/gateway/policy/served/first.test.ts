/** Policies that count the first of several identifiers that a request presents. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { onEachStore } from '#test/support/stores.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const fileOf = (identifier: string, more = ''): string => `version: 1
identifiers:
  ip: { source: client-address }
  site: { source: client-address, ipv6Prefix: 56 }
  session: { source: [{ cookie: sid }] }
  api-key: { source: [{ header: x-api-key }] }
policies:
  - { name: all, route: "GET /*", identifier: ${identifier}, limit: 5, window: 366d${more} }
`;

type Headers = Readonly<Record<string, string>>;

const withSession = (sid: string): Headers => ({ cookie: `sid=${sid}` });
const withKey = (key: string): Headers => ({ 'x-api-key': key });

/** Answers 401 to sessions and keys that it does not know. */
const upstream = await startUpstream(t, (req, res) => {
  const presented = [req.headers['x-api-key'], /sid=(\w+)/.exec(req.headers.cookie ?? '')?.[1]];
  const isKnown = presented.every((one) => one === undefined || String(one).startsWith('good'));
  res.writeHead(isKnown ? 200 : 401).end();
});

t.test('pupils of a school have a limit each, and strangers of its address one together', async (t) => {
  await insideLongWindow();
  const policies = fileOf('{ first: [session, api-key, ip] }');
  const options = { policies, env: BEHIND_PROXY, upstream: upstream.origin };
  await onEachStore(t, options, async (t, one, two) => {
    const ask = async (i: number, from: string, headers: Headers = {}): Promise<number> => {
      const { port } = i % 2 === 0 ? one : two;
      return (await send(port, '/', { headers: { 'x-forwarded-for': from, ...headers } })).status;
    };
    /** Returns how many requests are admitted. The first two go to one gateway, which has reported the proof then. */
    const passed = async (count: number, from: string, headers: Headers = {}): Promise<number> => {
      let admitted = 0;
      for (let i = 0; i < count; i++) if ((await ask(i < 2 ? 0 : i, from, headers)) !== 429) admitted++;
      return admitted;
    };

    const school = '192.0.2.1';
    for (const pupil of ['good1', 'good2', 'good3'])
      t.equal(await passed(7, school, withSession(pupil)), 5, `session ${pupil}`);
    t.equal(await passed(7, school), 2, 'the first request of each session was a stranger’s');
    t.equal(await ask(0, '192.0.2.9', withSession('good1')), 429, 'the session is counted at every address');
    t.equal(await ask(1, '192.0.2.9', { ...withSession('good1'), ...withKey('good1') }), 429, 'not the key');
    t.equal(await passed(7, '192.0.2.9', withKey('good2')), 5, 'without a session, the key');
    t.equal(
      await ask(0, school, withKey('good3')),
      429,
      'a new key waits while its address has nothing left',
    );

    const attacker = '192.0.2.66';
    let admitted = 0;
    for (let i = 0; i < 8; i++)
      for (const headers of [
        withSession(`bad${i}`),
        withKey(`bad${i}`),
        { ...withSession(`bad${i}`), ...withKey(`bad${i}`) },
        { cookie: `sid=bad${i}; sid=bad${i}` },
        { cookie: 'sid=' },
        {},
      ])
        if ((await ask(i, attacker, headers)) !== 429) admitted++;
    t.equal(admitted, 5, 'any mix of invented, empty and no sessions has one limit');

    const all = Array.from({ length: 40 }, (_, i) =>
      ask(i, '192.0.2.67', i % 3 === 0 ? {} : withSession(`bad${i}`)),
    );
    const statuses = await Promise.all(all);
    t.equal(statuses.filter((status) => status !== 429).length, 5, 'also all at once');

    t.equal(await ask(0, '192.0.2.68', { cookie: 'sid=good1; sid=bad' }), 400, 'two sessions');
    const twoKeys = { cookie: 'sid=good9', 'x-api-key': ['good1', 'good2'] };
    const { status } = await send(one.port, '/', {
      headers: { 'x-forwarded-for': '192.0.2.69', ...twoKeys },
    });
    t.equal(status, 200, 'keys are not read if there is a session');
  });
});

t.test('invented sessions are charged to the address as the policy counts it', async (t) => {
  await insideLongWindow();
  const policies = fileOf('{ first: [session, site] }');
  const options = { policies, env: BEHIND_PROXY, upstream: upstream.origin };
  await onEachStore(t, options, async (t, one, two) => {
    let admitted = 0;
    for (let i = 0; i < 12; i++) {
      const from = `2001:db8:0:${i}::1`;
      const headers = { 'x-forwarded-for': from, ...(i % 2 === 0 ? {} : withSession(`bad${i}`)) };
      if ((await send((i % 3 === 0 ? one : two).port, '/', { headers })).status !== 429) admitted++;
    }
    t.equal(admitted, 5, 'one limit for the /56');
  });
});

t.test('without an address in the list, requests that present none of it are not counted', async (t) => {
  await insideLongWindow();
  const policies = fileOf('{ first: [session, api-key] }');
  const options = { policies, env: BEHIND_PROXY, upstream: upstream.origin };
  await onEachStore(t, options, async (t, one) => {
    const passed = async (headersOf: (i: number) => Headers): Promise<number> => {
      let admitted = 0;
      for (let i = 0; i < 9; i++) {
        const headers = { 'x-forwarded-for': '192.0.2.1', ...headersOf(i) };
        if ((await send(one.port, '/', { headers })).status !== 429) admitted++;
      }
      return admitted;
    };
    t.equal(await passed(() => ({})), 9);
    t.equal(await passed((i) => (i % 2 === 0 ? withSession(`bad${i}`) : withKey(`bad${i}`))), 5);
    t.equal(await passed(() => ({})), 9);
  });
});

t.test('requests in flight: a place of the address for strangers and invented sessions', async (t) => {
  const waiting: (() => void)[] = [];
  const slow = await startUpstream(t, (_, res) => {
    waiting.push(() => res.writeHead(401).end());
  });
  const policies = fileOf('{ first: [session, ip] }').replace('limit: 5, window: 366d', 'concurrency: 3');
  await onEachStore(t, { policies, env: BEHIND_PROXY, upstream: slow.origin }, async (t, one, two) => {
    const from = { 'x-forwarded-for': '192.0.2.1' };
    let refused = 0;
    const asked = [
      {},
      withSession('bad1'),
      withSession('bad2'),
      {},
      withSession('bad3'),
      withSession('bad1'),
    ].map(async (headers, i) => {
      const { port } = i % 2 === 0 ? one : two;
      const { status } = await send(port, '/', { headers: { ...from, ...headers } });
      if (status === 429) refused++;
    });
    await until(() => refused === 3 && waiting.length === 3);
    for (const answer of waiting.splice(0)) answer();
    await Promise.all(asked);
    t.equal(refused, 3);
  });
});

t.test('bans the address of strangers, and never for an invented session', async (t) => {
  await insideLongWindow();
  const policies = fileOf('{ first: [session, ip] }', ', ban: { after: 3, within: 1h, for: 1h }');
  const options = { policies, env: BEHIND_PROXY, upstream: upstream.origin };
  await onEachStore(t, options, async (t, one) => {
    const ask = async (from: string, headers: Headers = {}): Promise<string> => {
      const { status, body } = await send(one.port, '/', {
        headers: { 'x-forwarded-for': from, ...headers },
      });
      return status < 429 ? 'passed' : String(JSON.parse(body.toString()).code);
    };
    for (let i = 0; i < 20; i++) await ask('192.0.2.1', withSession(`bad${i}`));
    t.equal(await ask('192.0.2.1'), 'gateway_rate_limited');
    for (let i = 0; i < 8; i++) await ask('192.0.2.2');
    await until(async () => (await ask('192.0.2.2')) === 'gateway_banned');
    t.equal(await ask('192.0.2.1'), 'gateway_rate_limited', 'denied, but not banned');
    await ask('192.0.2.3', withSession('good'));
    t.equal(await ask('192.0.2.2', withSession('good')), 'passed', 'a proven session passes the ban');
  });
});

t.test(
  'several limits, a shared bucket, overrides and plans count the part that a request presents',
  async (t) => {
    await insideLongWindow();
    const first = 'identifier: { first: [session, api-key, ip] }';
    const policies = `version: 1
identifiers:
  ip: { source: client-address }
  session: { source: [{ cookie: sid }] }
  api-key: { source: [{ header: x-api-key }] }
plan: { header: x-plan }
policies:
  - { name: a, route: GET /a, ${first}, bucket: both, limit: 4, window: 366d }
  - { name: b, route: GET /b, ${first}, bucket: both, limit: 4, window: 366d }
  - name: several
    route: GET /several
    ${first}
    limits: [{ limit: 3, window: 366d }, { limit: 5, window: 366d, identifier: everyone }]
  - name: planned
    route: GET /planned
    ${first}
    limit: 2
    window: 366d
    overrides: [{ for: { plan: gold }, limit: 6 }, { for: { address: 192.0.2.7 }, limit: 1 }]
`;
    await onEachStore(t, { policies, env: BEHIND_PROXY, upstream: upstream.origin }, async (t, one, two) => {
      const passed = async (count: number, paths: readonly string[], from: string, headers: Headers = {}) => {
        let admitted = 0;
        for (let i = 0; i < count; i++) {
          const { port } = i < 2 || i % 2 === 0 ? one : two;
          const sent = { 'x-forwarded-for': from, ...headers };
          if ((await send(port, paths[i % paths.length] ?? '', { headers: sent })).status !== 429) admitted++;
        }
        return admitted;
      };
      const [here, there] = ['192.0.2.1', '192.0.2.2'];
      t.equal(await passed(9, ['/a', '/b'], here, withSession('good1')), 4, 'both routes, one counter');
      t.equal(await passed(9, ['/b'], here), 3, 'the first request of the session was a stranger’s');
      t.equal(await passed(9, ['/b', '/a'], there, withKey('good1')), 4, 'a key has its own');

      t.equal(await passed(9, ['/several'], here, withSession('good1')), 3, 'its own limit');
      t.equal(await passed(9, ['/several'], there), 2, 'what is left for everyone');
      t.equal(await passed(9, ['/several'], there, withKey('good1')), 0);

      const gold = { 'x-plan': 'gold' };
      t.equal(await passed(9, ['/planned'], here, { ...withSession('good1'), ...gold }), 6, 'the plan');
      t.equal(await passed(9, ['/planned'], here, withKey('good1')), 2, 'another client');
      t.equal(await passed(9, ['/planned'], '192.0.2.7'), 1, 'the override of an address');
      t.equal(await passed(9, ['/planned'], '192.0.2.7', withSession('good1')), 0, 'the session is used up');
    });
  },
);

t.test('behind a proxy that asks, invented sessions share the limit of their address', async (t) => {
  await insideLongWindow();
  const policies = fileOf('{ first: [session, api-key, ip] }');
  const port = await freePort();
  const env = { ...BEHIND_PROXY, GATEWAY_DECISION_PORT: String(port) };
  await startTestGateway(t, { policies, env, upstream: upstream.origin });
  let admitted = 0;
  for (let i = 0; i < 12; i++) {
    const headers = {
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': '/',
      'x-forwarded-for': '192.0.2.1',
      ...(i % 3 === 0 ? {} : withSession(`bad${i}`)),
    };
    if ((await send(port, '/forward-auth', { headers })).status === 200) admitted++;
  }
  t.equal(admitted, 5);
});
