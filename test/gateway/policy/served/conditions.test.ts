/** Conditions of policies on running gateways: `unless`, `userAgent`, `query` and `except`. */
import t, { type Test } from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

/** Answers 200 to the good key and to requests without one, and 401 to all other keys. */
const application = (t: Test) =>
  startUpstream(t, (req, res) => {
    const key = req.headers['x-api-key'];
    res.writeHead(key === undefined || key === 'fbk_good' ? 200 : 401).end();
  });

t.test('unless: strangers have a small limit, and proven keys another one', async (t) => {
  await insideLongWindow();
  const upstream = await application(t);
  const policies = policyFile(
    'name: strangers, route: "GET /*", identifier: ip, unless: api-key, limit: 3, window: 366d',
    'name: keys, route: "GET /*", identifier: api-key, limit: 8, window: 366d',
  );
  await onEachStore(t, { upstream, policies, env: BEHIND_PROXY }, async (t, one, two) => {
    const ask = async (i: number, from: string, key?: string) => {
      const headers = { 'x-forwarded-for': from, ...(key === undefined ? {} : { 'x-api-key': key }) };
      return (await send((i % 2 === 0 ? one : two).port, '/a', { headers })).status;
    };
    const all = async (count: number, from: string, key?: string): Promise<number> => {
      let admitted = 0;
      for (let i = 0; i < count; i++) if ((await ask(i, from, key)) !== 429) admitted++;
      return admitted;
    };

    t.equal(await all(5, '192.0.2.1'), 3, 'without a key');
    t.equal(await all(10, '192.0.2.2', 'fbk_good'), 8, 'with a key: its first request proves it');
    t.equal(await ask(0, '192.0.2.2', 'fbk_good'), 429);
    t.equal(await all(4, '192.0.2.2'), 2, 'the first request of the key was a stranger’s');

    let invented = 0;
    for (let i = 0; i < 6; i++) if ((await ask(i, '192.0.2.3', `fbk_bad${i}`)) !== 429) invented++;
    t.equal(invented, 3, 'invented keys count as strangers together');
    t.equal(await ask(1, '192.0.2.3', 'fbk_good'), 429, 'the key has used its own limit, also there');
  });
});

t.test('unless: requests of one tick from one address, of which only some have a proven key', async (t) => {
  await insideLongWindow();
  const upstream = await application(t);
  const policies = policyFile(
    'name: strangers, route: "GET /*", identifier: ip, unless: api-key, limit: 5, window: 366d',
  );
  await onEachStore(t, { upstream, policies, env: BEHIND_PROXY }, async (t, { port }) => {
    const ask = async (key?: string): Promise<number> => {
      const headers = { 'x-forwarded-for': '192.0.2.7', ...(key === undefined ? {} : { 'x-api-key': key }) };
      return (await send(port, '/a', { headers })).status;
    };
    t.equal(await ask('fbk_good'), 200, 'proves the key');
    const statuses = await Promise.all(
      Array.from({ length: 30 }, (_, i) => ask([undefined, 'fbk_good', 'fbk_bad'][i % 3])),
    );
    const passed = (of: number): number =>
      statuses.filter((status, i) => i % 3 === of && status !== 429).length;
    t.equal(passed(1), 10, 'all with the proven key');
    t.equal(passed(0) + passed(2), 4, 'the others share what the first request left');
  });
});

t.test('unless: another gateway knows the proof', async (t) => {
  await insideLongWindow();
  const upstream = await application(t);
  const policies = policyFile(
    'name: strangers, route: "GET /*", identifier: ip, unless: api-key, limit: 2, window: 366d',
  );
  await onEachStore(t, { upstream, policies, env: BEHIND_PROXY }, async (t, one, two) => {
    const ask = async (port: number, from: string, key: string): Promise<number> =>
      (await send(port, '/a', { headers: { 'x-forwarded-for': from, 'x-api-key': key } })).status;
    t.equal(await ask(one.port, '192.0.2.8', 'fbk_good'), 200);
    // The first gateway reports the proof in its next tick.
    t.equal(await ask(one.port, '192.0.2.8', 'fbk_good'), 200);
    for (let i = 0; i < 2; i++)
      t.equal((await send(two.port, '/a', { headers: { 'x-forwarded-for': '192.0.2.9' } })).status, 200);
    t.equal(await ask(two.port, '192.0.2.9', 'fbk_good'), 200, 'the store knows the proof');
    t.equal(await ask(two.port, '192.0.2.9', 'fbk_bad'), 429);
  });
});

t.test('unless: a 401 withdraws the proof, also on a route that counts nothing else', async (t) => {
  await insideLongWindow();
  let accepts = true;
  const upstream = await startUpstream(t, (_, res) => res.writeHead(accepts ? 200 : 401).end());
  const policies = policyFile(
    'name: strangers, route: "GET /*", identifier: ip, unless: api-key, limit: 3, window: 366d',
  );
  await onEachStore(t, { upstream, policies }, async (t, { port }) => {
    const ask = async (): Promise<number> =>
      (await send(port, '/a', { headers: { 'x-api-key': 'fbk_revoked' } })).status;
    accepts = true;
    for (let i = 0; i < 5; i++) t.equal(await ask(), 200, 'proven');
    accepts = false;
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) statuses.push(await ask());
    t.strictSame(statuses, [401, 401, 401, 429, 429], 'one request as a stranger before');
  });
});

t.test('userAgent: the named programs are counted together', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: policyFile(
      'name: robots, route: "GET /*", identifier: everyone, userAgent: [GPTBot, ClaudeBot], limit: 3, window: 366d',
    ),
  });
  const ask = async (agent?: string): Promise<number> =>
    (await send(port, '/', { headers: agent === undefined ? {} : { 'user-agent': agent } })).status;
  const robots = ['Mozilla/5.0 (compatible; GPTBot/1.2)', 'claudebot', 'GPTBOT'];
  for (const agent of robots) t.equal(await ask(agent), 200, agent);
  t.equal(await ask('Mozilla ClaudeBot/1.0'), 429);
  for (const agent of ['Firefox', 'MyGPTBot2', undefined]) t.equal(await ask(agent), 200, `${agent}`);
});

t.test('query: requests with the parameter are counted, however it is spelled', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: policyFile(
      'name: deep, route: "GET /*", identifier: everyone, query: [page, after], limit: 8, window: 366d',
    ),
  });
  const ask = async (target: string): Promise<number> => (await send(port, target)).status;
  const spelled = ['page=1', 'p%61ge=2', 'x=1&after=c', 'page', '[page]=1', 'PAGE=3', 'page[]=1', 'x;page=1'];
  for (const query of spelled) t.equal(await ask(`/list?${query}`), 200, query);
  t.equal(await ask('/list?page=9'), 429);
  for (const target of ['/list', '/list?pages=1', '/list?x=page', '/page'])
    t.equal(await ask(target), 200, target);
});

t.test(
  '400: a query of more than 1,000 parameters where a policy, a ban or a list reads the query',
  async (t) => {
    await insideLongWindow();
    const policies = `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ query: key }] }
policies:
  - { name: deep, route: "GET /list", identifier: ip, query: [page], limit: 100, window: 366d }
  - { name: keys, route: "GET /keys", identifier: key, limit: 100, window: 366d }
  - { name: unless, route: "GET /unless", identifier: ip, unless: key, limit: 100, window: 366d }
  - { name: free, route: "GET /free", identifier: ip, limit: 100, window: 366d }
`;
    const { port } = await startTestGateway(t, { policies });
    const denied = 'deny: [{ digest: AAAAAAAAAAAAAAAAAAAAAA }]';
    const listing = await startTestGateway(t, { policies: `${denied}\n${policies}` });
    const ask = async (path: string, parameters: number, separator = '&', to = port) =>
      send(to, `${path}?${Array.from({ length: parameters }, (_, i) => i).join(separator)}`);
    for (const path of ['/list', '/keys', '/unless']) {
      t.equal((await ask(path, 1000)).status, 200, path);
      for (const separator of ['&', ';', '&;']) {
        const reply = await ask(path, 1001, separator);
        t.equal(reply.status, 400, `${path} with ${separator}`);
        t.match(reply.body.toString(), 'the query has more than 1000 parameters; send fewer');
      }
    }
    for (const path of ['/free', '/other']) {
      t.equal((await ask(path, 1001)).status, 200, `no policy reads the query of ${path}`);
      t.equal((await ask(path, 1001, '&', listing.port)).status, 400, 'the list looks for a key in it');
    }
  },
);

t.test('except: another policy counts these routes', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: policyFile(
      'name: all, route: "* /v1/*", identifier: everyone, except: [POST /v1/login, GET /v1/public/*], limit: 2, window: 366d',
      'name: login, route: POST /v1/login, identifier: everyone, limit: 1, window: 366d',
    ),
  });
  const ask = async (method: string, target: string): Promise<number> =>
    (await send(port, target, { method })).status;
  t.equal(await ask('POST', '/v1/login'), 200);
  t.equal(await ask('POST', '/v1//login/'), 429, 'the smaller policy');
  for (let i = 0; i < 4; i++) t.equal(await ask('GET', '/v1/public/a'), 200);
  t.equal(await ask('GET', '/v1/login'), 200, 'another method');
  // One server reads /v1/public/x, and another one /v1/items.
  t.equal(await ask('GET', '/v1/public/..;/items'), 200, 'counted, because one reading is not excepted');
  t.equal(await ask('GET', '/v1/items'), 429);
});

t.test('a slash at the end is forwarded, whether a policy counts the request or not', async (t) => {
  const upstream = await startUpstream(t, (req, res) => res.end(req.url));
  const { port } = await startTestGateway(t, {
    upstream: upstream.origin,
    policies: policyFile(
      'name: robots, route: "GET /*", identifier: everyone, userAgent: [GPTBot], limit: 3, window: 1h',
    ),
  });
  t.equal((await send(port, '/docs/')).body.toString(), '/docs/');
  const counted = await send(port, '/docs/', { headers: { 'user-agent': 'GPTBot' } });
  t.equal(counted.body.toString(), '/docs/');
  t.match(counted.headers.ratelimit, /r=2/);
});
