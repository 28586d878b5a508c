/** Tests `floodgate check`: mistakes, tests, and the JSON document. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const good = policyFile('name: a, route: GET /a, identifier: ip, limit: 2, window: 1h').replace(
  /^ +api-key.*\n/m,
  '',
);
const tested = (allowed: number): string =>
  `${good}\ntests:\n  - { name: two, request: GET /a, times: 3, expect: { allowed: ${allowed} } }\n`;

t.test('prints the mistakes of a file and the results of its tests', async (t) => {
  const cwd = temporaryFolder(t);
  const check = async (text: string) => {
    writeFileSync(join(cwd, 'p.yaml'), text);
    const people = await floodgateCommand(['check', 'p.yaml'], { cwd });
    const { code, stdout } = await floodgateCommand(['check', 'p.yaml', '--json'], { cwd });
    t.equal(code, people.code);
    return { people, json: JSON.parse(stdout) };
  };
  const right = await check(tested(2));
  t.match(right.people, {
    code: 0,
    stdout: 'p.yaml: 1 policies, 3 exclusions, no mistakes, 1 tests passed\n',
  });
  t.strictSame(right.json, {
    ok: true,
    file: 'p.yaml',
    policies: 1,
    problems: [],
    warnings: [],
    tests: { passed: 1, failed: 0, failures: [] },
  });

  const failing = await check(tested(3));
  t.match(failing.people, {
    code: 1,
    stderr: /^p\.yaml:\d+: test "two" fails: allowed: expected 3, got 2 of 3$/m,
  });
  t.match(failing.json, { ok: false, tests: { passed: 0, failed: 1, failures: [{ name: 'two' }] } });

  const wrong = await check(good.replace('limit: 2', 'limit: 0'));
  t.match(wrong.people, { code: 1, stdout: '', stderr: /limit is 0/ });
  t.match(wrong.json, {
    ok: false,
    problems: [{ line: Number, column: Number, message: 'limit is 0', fix: /whole number/ }],
  });
});

t.test('warnings do not change the exit code', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(
    join(cwd, 'p.yaml'),
    policyFile('name: a, route: GET /a, identifier: ip, limit: 2, window: 1h, bucket: alone'),
  );
  const people = await floodgateCommand(['check', 'p.yaml'], { cwd });
  t.match(people, {
    code: 0,
    stdout: /no mistakes/,
    stderr: /^p\.yaml:7:\d+: warning: nothing shares the bucket alone with a; give other policies/m,
  });
  const { code, stdout } = await floodgateCommand(['check', 'p.yaml', '--json'], { cwd });
  t.equal(code, 0);
  const { ok, warnings } = JSON.parse(stdout);
  t.equal(ok, true);
  t.match(warnings, [
    { line: 4, column: 3, message: /no policy uses the identifier api-key/, fix: String },
    { line: 7, column: Number, message: /nothing shares/, fix: /same bucket/ },
  ]);
});
