/** `first`, with requests in flight, bans and a proxy that asks. What it counts is in test/policies/first.yaml. */
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

/** Answers 401 to sessions and keys that it does not know. */
const upstream = await startUpstream(t, (req, res) => {
  const presented = [req.headers['x-api-key'], /sid=(\w+)/.exec(req.headers.cookie ?? '')?.[1]];
  const isKnown = presented.every((one) => one === undefined || String(one).startsWith('good'));
  res.writeHead(isKnown ? 200 : 401).end();
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
