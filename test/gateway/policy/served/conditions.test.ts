/** Proofs between gateways, and queries that are too long. What conditions select is in test/policies/conditions.yaml. */
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
