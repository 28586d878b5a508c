/** Lists with digests, several credentials, and what a denial tells. Whom lists match is in test/policies/lists.yaml. */
import t from 'tap';
import { Digester, identityOf } from '#gateway/identity/digest.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { entryFor } from '#gateway/policy/lists.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';

const SALT = 'salt of the lists';
const digester = new Digester(SALT);
const key = (value: string): string =>
  digester.identify({ name: 'api-key', kind: 'credential', sources: [] }, value).digest;
const address = (value: string): string =>
  digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, value).digest;

const FILE = `allow:
  - { address: 10.1.0.0/16 }
  - { digest: ${key('friend')} }
  - { digest: ${address('192.0.2.7')} }
deny:
  - { address: 10.0.0.0/8 }
  - { address: 203.0.113.0/24, status: 403, reason: "write to abuse@example.com" }
  - { address: "2001:db8:bad::/48" }
  - { digest: ${key('stolen')} }
${policyFile(
  'name: all, route: "* *", identifier: ip, limit: 1, window: 366d',
  'name: keys, route: "GET /keys", identifier: api-key, limit: 1, window: 366d',
)}`;

t.test('lists match by digest, and tell who was denied', async (t) => {
  const { port, gateway } = await startTestGateway(t, {
    policies: FILE,
    env: { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: SALT },
  });
  const ask = (from: string, path = '/a', headers: Record<string, string> = {}, method = 'GET') =>
    send(port, path, { method, headers: { 'x-forwarded-for': from, ...headers } });
  const statuses = async (...request: Parameters<typeof ask>) =>
    [await ask(...request), await ask(...request)].map(({ status }) => status);
  t.strictSame(await statuses('192.0.2.7'), [200, 200], 'allowed by the digest of the address');
  t.strictSame(await statuses('192.0.2.8', '/keys', { 'x-api-key': 'friend' }), [200, 200]);
  const both = { authorization: 'Bearer fbk_1', 'x-api-key': 'stolen' };
  t.strictSame(
    await statuses('192.0.2.10', '/a', both),
    [429, 429],
    'another key does not hide the denied one',
  );
  const one = { ...both, 'x-api-key': 'friend' };
  t.strictSame(await statuses('192.0.2.12', '/a', one), [200, 429], 'the application may read the other key');
  t.strictSame(await statuses('192.0.2.11', '/other', { 'x-api-key': 'stolen' }), [429, 429]);

  const denied = await ask('10.2.0.1');
  t.match(JSON.parse(denied.body.toString()), {
    code: 'gateway_denied',
    message: 'The operator has blocked this client.',
    details: {},
  });
  const forbidden = await ask('203.0.113.9');
  t.equal(forbidden.headers['retry-after'], undefined);
  t.match(forbidden.body.toString(), 'The operator has blocked this client: write to abuse@example.com');
  const widget = await ask('203.0.113.9', '/api/v1/client/w1/responses', {}, 'POST');
  t.match(widget.headers, { 'access-control-allow-origin': '*', 'retry-after': '3600' });
  t.match(await gateway.findDecision(String(denied.headers['x-gateway-decision'])), {
    decision: 'listed',
    policy: 'deny list',
    line: 6,
    identity: address('10.2.0.1'),
    path: '/a',
  });
  const listed = gateway.samples().filter(({ name }) => name === 'floodgate_listed_total');
  t.match(listed, [
    { labels: { list: 'allow' }, value: 4 },
    { labels: { list: 'deny' }, value: 7 },
  ]);
});

t.test('a second credential does not bypass a ban or the list', async (t) => {
  const upstream = await startUpstream(t);
  const of = (name: string, value: string): string =>
    digester.identify({ name, kind: 'credential', sources: [] }, value).digest;
  const policies = `version: 1
identifiers:
  key: { source: [{ header: x-api-key }, { bearer: fbk_ }] }
  token: { source: [{ query: token }] }
  session: { source: [{ cookie: sid }] }
deny: [${['key', 'token', 'session'].map((name) => `{ digest: ${of(name, 'denied')} }`).join(', ')}]
policies: []
`;
  const { port, gateway } = await startTestGateway(t, {
    upstream,
    policies,
    env: { GATEWAY_IDENTITY_SECRET: SALT },
  });
  for (const name of ['key', 'token', 'session'])
    await gateway.control.ban(identityOf(of(name, 'banned')), 60_000, '');
  for (const value of ['denied', 'banned']) {
    const requests: readonly [string, Record<string, string | string[]>][] = [
      ['/a', { 'x-api-key': [value, 'other'] }],
      ['/a', { 'x-api-key': ['other', value] }],
      ['/a', { 'x-api-key': value, authorization: 'Bearer fbk_x' }],
      [`/a?token=other&token=${value}`, {}],
      [`/a?token=${value};token=other`, {}],
      ['/a', { cookie: `sid=other; sid=${value}` }],
      ['/a', { cookie: [`sid=${value}`, 'sid=other'] }],
    ];
    for (const [path, headers] of requests) {
      const { status } = await send(port, path, { headers });
      t.equal(status, 429, `${path} ${JSON.stringify(headers)}`);
    }
  }
  t.equal((await send(port, '/a', { headers: { 'x-api-key': ['one', 'two'] } })).status, 200);
  const many = (count: number): string => Array.from({ length: count }, (_, i) => `token=${i}`).join('&');
  t.equal((await send(port, `/a?${many(16)}`)).status, 200);
  const tooMany = await send(port, `/a?${many(17)}`);
  t.equal(tooMany.status, 400);
  t.match(tooMany.body.toString(), 'the request presents more than 16 different values of token; send one');
});

const CLOSED = `allow:
  - { address: 10.1.0.0/16 }
deny:
  - { route: "* /api/envoy-auth/*", reason: for programs inside only }
  - { route: "POST /admin/{id}", status: 429 }
  - { route: "* /api/v1/client/{id}/secret" }
${policyFile('name: all, route: "* *", identifier: ip, limit: 2, window: 366d')}`;

t.test(
  'a closed route does not reach the application, and its refusal tells which entry closes it',
  async (t) => {
    const seen: string[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      res.end();
    });
    const { port, gateway } = await startTestGateway(t, { upstream, policies: CLOSED, env: BEHIND_PROXY });
    const closed = await send(port, '/api/envoy-auth/x');
    t.equal(closed.headers['retry-after'], undefined);
    t.match(JSON.parse(closed.body.toString()), {
      code: 'gateway_forbidden',
      message: 'The operator has closed this route: for programs inside only',
      details: {},
    });
    t.strictSame(seen, []);
    const record = await gateway.findDecision(String(closed.headers['x-gateway-decision']));
    t.match(record, { decision: 'listed', policy: 'closed route', line: 4, path: '/api/envoy-auth/x' });
    t.match(record === null ? null : textOf(record), {
      reasons: ['The list deny of the policy file names this route.'],
      advice: /^To open the route, remove the entry in .*:4; it applies at once\.$/,
    });
  },
);

t.test(
  'an entry in the policy file takes precedence over the same one in a list file, in any order',
  async (t) => {
    const policies = policyFile('name: all, route: "* *", identifier: ip, limit: 1, window: 366d');
    const rows = ['{ address: 203.0.113.0/24, status: 403 }', '{ userAgent: GPTBot, status: 403 }'];
    const file = '{ file: list.txt }';
    const find = (entries: readonly string[], text: string, allow = '[]') => {
      const set = loadPolicies(`allow: ${allow}\ndeny: [${entries}]\n${policies}`, 'p.yaml', () => text);
      if (set.lists === null) throw new Error('there are lists');
      const { lists } = set;
      const none = { host: '', digests: [], doubtful: [] };
      return [
        entryFor(lists, { ...none, address: [203, 0, 113, 7], words: [] }),
        entryFor(lists, { ...none, address: [192, 0, 2, 7], words: ['gptbot'] }),
      ].map((entry) => entry && `${entry.list} ${entry.status}`);
    };
    const text = '203.0.113.0/24\ngptbot\n';
    const both = ['deny 403', 'deny 403'];
    t.strictSame(find([...rows, file], text), both);
    t.strictSame(find([file, ...rows], text), both, 'a reloaded file does not become a mistake');
    const networks = '203.0.113.0/24\n';
    t.strictSame(find(rows, networks, `[${file}]`), both, 'nor a file of the other list');
    t.strictSame(find([file], networks, `[${file}]`), ['deny 429', null], 'deny takes precedence over allow');
  },
);
