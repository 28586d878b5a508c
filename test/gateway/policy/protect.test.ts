/** `protect` and `priority` in the file: their meaning, and the output of check and explain. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';

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

t.test('check warns of priorities without protect', async (t) => {
  const warnings = (text: string) =>
    warningsOf(loadPolicies(text, 'p.yaml'), placesIn(text)).map(({ line, message }) => `${line} ${message}`);
  const useless = 'priority has no effect without protect';
  t.strictSame(warnings(file('')), [`7 ${useless}`, `8 ${useless}`, `9 ${useless}`]);
  t.strictSame(warnings(ON), []);
});
