import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { CorsTable, NO_CORS, UNREAD } from '#gateway/reply/cors.ts';
import { isPreflight, preflightReply } from '#gateway/reply/preflight.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { policyFile } from '#test/support/gateway.ts';

const APP = 'https://app.example.org';

const load = (text: string) => loadPolicies(`${policyFile()}\n${text}`, 'p.yaml');
const tableOf = (cors: string): CorsTable => new CorsTable(load(`replies: { cors: ${cors} }`));
const from = (origin: string): string[] => ['Host', 'a', 'Origin', origin];

t.test('origins are written as browsers send them', async (t) => {
  for (const origin of [
    '*',
    APP,
    'http://localhost:3000',
    'https://xn--bcher-kva.example',
    'http://[::1]:8080',
    'http://192.0.2.1',
    'capacitor://localhost',
    'moz-extension://2c127fa4-62c7-7e4f-90e5-472b45eecfdc',
  ])
    t.match(load(`replies: { cors: ["${origin}"] }`).origins, [{ origin, route: null, credentials: false }]);
  t.match(load('replies: { cors: "*" }').origins, [{ origin: '*' }]);
  for (const [written, fix] of [
    ['https://app.example.org/', 'such as https://app.example.org, or'],
    ['https://app.example.org/path', 'such as https://app.example.org, or'],
    ['https://user@app.example.org', 'such as https://app.example.org, or'],
    ['HTTPS://App.Example.org', 'such as https://app.example.org, or'],
    ['https://app.example.org:443', 'such as https://app.example.org, or'],
    ['http://app.example.org:080', 'such as http://app.example.org, or'],
    ['https://bücher.example', 'such as https://xn--bcher-kva.example, or'],
    ['app.example.org', 'such as https://app.example.org'],
    ['localhost:3000', 'such as https://app.example.org'],
    ['capacitor://localhost/', 'such as https://app.example.org'],
    ['https://*.example.org', 'for all of them'],
    ['null', 'such as https://app.example.org'],
    ['', 'such as https://app.example.org'],
  ] as const)
    t.throws(() => load(`replies: { cors: ["${written}"] }`), { message: fix }, written);
});

t.test('without the key, only client routes are for pages of other origins', async (t) => {
  const table = new CorsTable(load(''));
  t.equal(table.on('GET', '/a', from(APP)), NO_CORS);
  t.strictSame(NO_CORS.headers, []);
  t.match(table.on('GET', '/api/v1/client/w', from(APP)), { origin: '*', isClientRoute: true });
  t.equal(table.unread(from(APP)), UNREAD);
});

t.test('the limit headers of the application depend on the route, not on the page', async (t) => {
  const table = tableOf(`[{ origin: ${APP}, route: GET /a }]`);
  for (const headers of [from(APP), from('https://other.test'), []])
    t.equal(table.on('HEAD', '/a', headers).exposesLimits, true);
  t.equal(table.on('POST', '/a', from(APP)).exposesLimits, false);
});

t.test('"*" does not vary', async (t) => {
  const { headers, origin } = tableOf('"*"').on('GET', '/a', from('null'));
  t.equal(origin, '*');
  t.notOk(headers.includes('Vary'));
});

t.test('a preflight with credentials allows only what is a method and a list of names', async (t) => {
  const cors = tableOf(`[{ origin: ${APP}, credentials: true }]`).on('GET', '/a', from(APP));
  const allowed = (method: string, names: string): readonly string[] =>
    preflightReply({ cors, decision: null, close: false }, [
      'Access-Control-Request-Method',
      method,
      'access-control-request-headers',
      names,
    ]).headers;
  t.strictSame(allowed('PUT', 'x-a,x-b , X-C'), [
    'Access-Control-Allow-Methods',
    'PUT',
    'Access-Control-Allow-Headers',
    'x-a,x-b , X-C',
  ]);
  t.strictSame(allowed('P UT', 'x-a;'), []);
  t.strictSame(allowed('', ''), []);
  t.equal(isPreflight('OPTIONS', [...from(APP), 'Access-Control-Request-Method', 'PUT']), true);
});

t.test('tests of a policy file see the headers, and 204 for preflights', async (t) => {
  const set = load(`replies: { cors: [{ origin: ${APP}, credentials: true }] }
deny: [{ route: "* /closed" }]
tests:
  - name: read
    request: GET /closed
    headers: { Origin: ${APP} }
    expect: { status: 403, headers: { access-control-allow-origin: ${APP}, access-control-allow-credentials: "true", vary: Origin } }
  - name: page
    request: GET /closed
    headers: { Origin: ${APP}, Accept: text/html }
    expect: { headers: { vary: "Accept, Origin" } }
  - name: asked
    request: OPTIONS /closed
    headers: { Origin: ${APP}, Access-Control-Request-Method: PUT }
    expect: { status: 204, headers: { access-control-allow-methods: PUT } }
  - name: malformed
    request: GET /a%00
    headers: { Origin: ${APP} }
    expect: { status: 400, headers: { access-control-allow-origin: ${APP} } }
  - name: wrong
    request: GET /closed
    headers: { Origin: https://other.test }
    expect: { headers: { access-control-allow-origin: ${APP} } }
`);
  t.match(runTests(set), [{ name: 'wrong', message: /access-control-allow-origin: expected .*, got none/ }]);
  t.equal(runTests(set).length, 1);
});
