import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { CorsTable, NO_CORS, UNREAD } from '#gateway/reply/cors.ts';
import { isPreflight, preflightReply } from '#gateway/reply/preflight.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { policyFile } from '#test/support/gateway.ts';

const APP = 'https://app.example.org';
const ORIGINS = join(import.meta.dirname, 'origins.md');

const load = (text: string) => loadPolicies(`${policyFile()}\n${text}`, 'p.yaml');
const tableOf = (cors: string): CorsTable => new CorsTable(load(`replies: { cors: ${cors} }`));
const from = (origin: string): string[] => ['Host', 'a', 'Origin', origin];

t.test('origins are written as browsers send them', async (t) => {
  for (const [origin = ''] of casesUnder(ORIGINS, 'As browsers send them'))
    t.match(load(`replies: { cors: ["${origin}"] }`).origins, [{ origin, route: null, credentials: false }]);
  t.match(load('replies: { cors: "*" }').origins, [{ origin: '*' }]);
  for (const [written = '', message = ''] of casesUnder(ORIGINS, 'Mistakes, and what the message proposes'))
    t.throws(() => load(`replies: { cors: ["${written}"] }`), { message }, written);
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
  const set = load(readFileSync(join(import.meta.dirname, 'cors-tests.yaml'), 'utf8'));
  t.match(runTests(set), [{ name: 'wrong', message: /access-control-allow-origin: expected .*, got none/ }]);
  t.equal(runTests(set).length, 1);
});
