/** `protect` and `priority` in the file: their meaning, and the output of check and explain. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';

const file = (protect: string, tests = ''): string => `version: 1
identifiers: { ip: { source: client-address } }
exclude: [GET /status]
${protect}
policies:
  - { name: site, route: "* /*", identifier: ip, limit: 100, window: 1m }
  - { name: reports, route: "* /reports/*", identifier: ip, limit: 10, window: 1m, priority: low }
  - { name: urgent, route: GET /reports/urgent, identifier: ip, limits: [{ limit: 5, window: 1m }, { concurrency: 2 }], priority: high }
  - { name: login, route: POST /login, identifier: ip, limit: 10, window: 1m, priority: high }
${tests}`;
const ON = file('protect: on');

t.test('reads the protect section of the file', async (t) => {
  const protectOf = (text: string) => loadPolicies(file(text), 'p.yaml').protect;
  t.equal(protectOf(''), null);
  t.equal(protectOf('protect: off'), null);
  t.equal(protectOf('protect: false'), null);
  t.equal(protectOf('protect: on'), 'on');
  t.equal(protectOf('protect: true'), 'on');
  t.equal(protectOf('protect: shadow'), 'shadow');
});

t.test('a request has the highest priority of its policies, else normal', async (t) => {
  const tests = `tests:
  - { name: highest, request: GET /reports/urgent, expect: { priority: high } }
  - { name: low, request: GET /reports/1, expect: { priority: low } }
  - { name: none named, request: GET /, expect: { priority: normal } }
  - { name: excluded, request: GET /status, expect: { priority: normal } }
`;
  t.strictSame(runTests(loadPolicies(file('protect: on', tests), 'p.yaml')), []);
  const wrong = `tests:
  - { name: wrong, request: POST /login, expect: { priority: low } }
  - { name: malformed, request: GET /a%00b, expect: { priority: low } }
`;
  t.strictSame(
    runTests(loadPolicies(file('protect: on', wrong), 'p.yaml')).map(({ message }) => message),
    ['priority: expected low, got high', 'priority: expected low, got none'],
  );
});

t.test('check warns of priorities without protect', async (t) => {
  const warnings = (text: string) =>
    warningsOf(loadPolicies(text, 'p.yaml'), placesIn(text)).map(({ line, message }) => `${line} ${message}`);
  const useless = 'priority has no effect without protect';
  t.strictSame(warnings(file('')), [`7 ${useless}`, `8 ${useless}`, `9 ${useless}`]);
  t.strictSame(warnings(ON), []);
});

t.test('explain shows the priority', async (t) => {
  const explained = (text: string, target: string) => {
    const set = loadPolicies(text, 'p.yaml');
    return explain(set, new Rehearsal(set, { clock: () => 0 }), requestOf(`GET ${target}`, [], '192.0.2.1'));
  };
  t.equal((await explained(ON, '/reports/1')).priority, 'low');
  t.equal((await explained(ON, '/reports/urgent')).priority, 'high');
  t.equal((await explained(file(''), '/reports/1')).priority, null);
  t.equal((await explained(ON, '/a%00b')).priority, null);
});
