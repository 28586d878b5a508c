/** Tests the lists allow and deny on a running gateway: which clients they match, and the replies. */
import t from 'tap';
import { Digester, identityOf } from '#gateway/identity/digest.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { entryFor } from '#gateway/policy/lists.ts';
import { textOf } from '#gateway/refusals/decision-text.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
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

t.test('which clients the lists match, and the replies', async (t) => {
  const { port, gateway } = await startTestGateway(t, {
    policies: FILE,
    env: { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: SALT },
  });
  const ask = (from: string, path = '/a', headers: Record<string, string> = {}, method = 'GET') =>
    send(port, path, { method, headers: { 'x-forwarded-for': from, ...headers } });
  const statuses = async (times: number, ...request: Parameters<typeof ask>) => {
    const all: number[] = [];
    for (let i = 0; i < times; i++) all.push((await ask(...request)).status);
    return all;
  };
  t.strictSame(await statuses(3, '10.1.2.3'), [200, 200, 200], 'allowed, although a wider network is denied');
  t.equal((await ask('10.1.2.3')).headers['x-ratelimit-limit'], undefined, 'an allowed one is not counted');
  t.strictSame(await statuses(3, '192.0.2.7'), [200, 200, 200], 'allowed by the digest of the address');
  t.strictSame(await statuses(3, '192.0.2.8', '/keys', { 'x-api-key': 'friend' }), [200, 200, 200]);
  t.strictSame(await statuses(2, '192.0.2.9'), [200, 429], 'other clients are counted');

  const denied = await ask('10.2.0.1');
  t.equal(denied.status, 429);
  t.match(denied.headers, {
    'retry-after': '3600',
    'x-gateway-ratelimited': 'true',
    'cache-control': 'no-store',
  });
  t.match(JSON.parse(denied.body.toString()), {
    code: 'gateway_denied',
    message: 'The operator has blocked this client.',
    details: {},
  });
  t.strictSame(await statuses(1, '10.2.0.1', '/a', {}, 'OPTIONS'), [429], 'excluded methods are denied too');
  t.strictSame(await statuses(1, '2001:db8:bad:1::7'), [429]);
  t.strictSame(
    await statuses(1, '192.0.2.10', '/a', { authorization: 'Bearer fbk_1', 'x-api-key': 'stolen' }),
    [429],
    'a second key does not hide the denied one',
  );
  t.strictSame(
    await statuses(2, '192.0.2.12', '/a', { authorization: 'Bearer fbk_1', 'x-api-key': 'friend' }),
    [200, 429],
    'one of two keys is not enough, because the application may read the other',
  );
  t.strictSame(await statuses(1, '192.0.2.11', '/other', { 'x-api-key': 'stolen' }), [429], 'on every route');

  const forbidden = await ask('203.0.113.9');
  t.equal(forbidden.status, 403);
  t.equal(forbidden.headers['retry-after'], undefined);
  t.match(forbidden.body.toString(), 'The operator has blocked this client: write to abuse@example.com');
  const widget = await ask('203.0.113.9', '/api/v1/client/w1/responses', {}, 'POST');
  t.equal(widget.status, 429, '429, because survey widgets drop answers on 403');
  t.match(widget.headers, { 'access-control-allow-origin': '*', 'retry-after': '3600' });

  const id = String(denied.headers['x-gateway-decision']);
  t.match(await gateway.findDecision(id), {
    decision: 'listed',
    policy: 'deny list',
    line: 6,
    identity: address('10.2.0.1'),
    path: '/a',
  });
  const listed = gateway.samples().filter(({ name }) => name === 'floodgate_listed_total');
  t.match(listed, [
    { labels: { list: 'allow' }, value: 10 },
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

t.test('policy tests apply the lists', async (t) => {
  const tests = `tests:
  - { name: allowed, request: GET /a, from: 10.1.2.3, times: 5, expect: { allowed: 5, policies: [] } }
  - { name: denied, request: GET /a, from: 10.2.0.1, expect: { allowed: 0, status: 429, headers: { retry-after: 3600 } } }
  - { name: forbidden, request: GET /a, from: 203.0.113.9, expect: { status: 403 } }
  - { name: widget, request: POST /api/v1/client/w/displays, from: 203.0.113.9, expect: { status: 429 } }
`;
  t.strictSame(runTests(loadPolicies(`${FILE}\n${tests}`, 'p.yaml')), []);
});

const CLOSED = `allow:
  - { address: 10.1.0.0/16 }
deny:
  - { route: "* /api/envoy-auth/*", reason: for programs inside only }
  - { route: "POST /admin/{id}", status: 429 }
  - { route: "* /api/v1/client/{id}/secret" }
${policyFile('name: all, route: "* *", identifier: ip, limit: 2, window: 366d')}`;

t.test('routes that are denied to everybody', async (t) => {
  const seen: string[] = [];
  const upstream = await startUpstream(t, (req, res) => {
    seen.push(`${req.method} ${req.url}`);
    res.end();
  });
  const { port, gateway } = await startTestGateway(t, { upstream, policies: CLOSED, env: BEHIND_PROXY });
  const ask = (method: string, path: string, from = '192.0.2.1') =>
    send(port, path, { method, headers: { 'x-forwarded-for': from } });
  const closed = await ask('GET', '/api/envoy-auth/x');
  t.equal(closed.headers['retry-after'], undefined);
  t.match(JSON.parse(closed.body.toString()), {
    code: 'gateway_forbidden',
    message: 'The operator has closed this route: for programs inside only',
    details: {},
  });
  for (const path of [
    '/api/envoy-auth',
    '/api/envoy-auth/',
    '/api/envoy-auth/a/b?c',
    '/api//envoy-auth/x',
    '/api/./envoy-auth/x',
    '/api/%65nvoy-auth/x',
    '/api/envoy-auth;a=b/x',
  ]) {
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
      t.equal((await ask(method, path)).status, 403, `${method} ${path}`);
  }
  t.equal((await ask('GET', '/api/envoy-auth/x', '10.1.2.3')).status, 403, 'allow does not open the route');
  const later = await ask('POST', '/admin/7');
  t.match(later, { status: 429, headers: { 'retry-after': '3600', 'x-gateway-ratelimited': 'true' } });
  const widget = await ask('GET', '/api/v1/client/w/secret');
  t.match(
    widget,
    { status: 429, headers: { 'access-control-allow-origin': '*' } },
    '429, because widgets drop answers on 403',
  );
  t.strictSame(seen, [], 'the application got none of the requests');

  t.equal((await ask('GET', '/admin/7')).status, 200, 'another method is not denied');
  t.equal((await ask('GET', '/api/envoy-author')).status, 200, 'denied requests are not counted');
  t.equal((await ask('GET', '/api/envoy')).status, 429);

  const id = String(closed.headers['x-gateway-decision']);
  const record = await gateway.findDecision(id);
  t.match(record, { decision: 'listed', policy: 'closed route', line: 4, path: '/api/envoy-auth/x' });
  t.match(record === null ? null : textOf(record), {
    reasons: ['The list deny of the policy file names this route.'],
    advice: /^To open the route, remove the entry in .*:4; it applies at once\.$/,
  });
});

t.test('denied routes: policy tests apply them, and the first entry counts', async (t) => {
  const tests = `tests:
  - { name: closed, request: GET /api/envoy-auth/x, from: 10.1.2.3, expect: { allowed: 0, status: 403, policies: [] } }
  - { name: later, request: POST /admin/7, expect: { status: 429, headers: { retry-after: 3600 } } }
  - { name: open, request: GET /admin/7, expect: { allowed: 1, policies: [all] } }
`;
  t.strictSame(runTests(loadPolicies(`${CLOSED}\n${tests}`, 'p.yaml')), []);
  const wide = CLOSED.replace('deny:', 'deny:\n  - { route: "* /admin/*" }');
  const expect = 'tests: [{ name: first, request: POST /admin/7, expect: { status: 403 } }]';
  t.strictSame(runTests(loadPolicies(`${wide}\n${expect}\n`, 'p.yaml')), []);
  const other = 'tests: [{ name: other case, request: GET /API/Envoy-Auth, expect: { status: 403 } }]';
  const caseless = CLOSED.replace('version: 1', 'version: 1\nignoreCase: true');
  t.strictSame(runTests(loadPolicies(`${caseless}\n${other}\n`, 'p.yaml')), []);
});

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

t.test('entries with hosts apply to these hosts, and before entries for all', async (t) => {
  const policies = `allow:
  - { address: 10.1.0.0/16, hosts: [admin.example.org] }
  - { digest: ${key('friend')}, hosts: ["*.shop.example.org"] }
deny:
  - { address: 10.0.0.0/8, hosts: [admin.example.org] }
  - { address: 10.0.0.0/8, hosts: ["*.shop.example.org"] }
  - { address: 10.1.2.0/24 }
  - { userAgent: GPTBot, hosts: [admin.example.org], status: 403 }
  - { address: 10.0.0.0/8, hosts: [b.shop.example.org], status: 403 }
${policyFile('name: all, route: "* *", identifier: api-key, limit: 1, window: 366d')}`;
  const { port } = await startTestGateway(t, {
    policies,
    env: { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: SALT },
  });
  const status = async (from: string, host: string, headers: Record<string, string> = {}) =>
    (await send(port, '/a', { headers: { 'x-forwarded-for': from, host, ...headers } })).status;
  t.equal(await status('10.3.0.1', 'admin.example.org'), 429, 'denied for the host');
  t.equal(await status('10.3.0.1', 'ADMIN.example.org.:80'), 429, 'in any spelling of it');
  t.equal(await status('10.3.0.1', 'a.shop.example.org'), 429, 'or for a name below');
  t.equal(await status('10.3.0.1', 'example.org'), 200, 'not for another host');
  t.equal(await status('10.1.2.1', 'example.org'), 429, 'denied for all hosts');
  t.equal(await status('10.1.2.1', 'admin.example.org'), 200, 'the entries for the host win');
  t.equal(await status('192.0.2.1', 'admin.example.org', { 'user-agent': 'GPTBot/1.2' }), 403);
  t.equal(await status('192.0.2.1', 'example.org', { 'user-agent': 'GPTBot/1.2' }), 200);
  const friend = { 'x-api-key': 'friend' };
  t.equal(await status('10.3.0.1', 'b.shop.example.org', friend), 403, 'of several lists, deny wins');
  t.equal(await status('192.0.2.2', 'b.shop.example.org', friend), 200);
  t.equal(await status('192.0.2.2', 'b.shop.example.org', friend), 200, 'it is not counted');
  t.equal(await status('192.0.2.2', 'example.org', friend), 200);
  t.equal(await status('192.0.2.2', 'example.org', friend), 429, 'counted for another host');
  t.equal(await status('192.0.2.3', 'shop..example.org'), 400, 'the host must be one');
});
