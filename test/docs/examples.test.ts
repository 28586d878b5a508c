/** Every example is a policy file without mistakes, which `floodgate check` reads without a warning. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { projectRoot } from '#test/support/process.ts';
import { readPage } from './pages.ts';

const folder = join(projectRoot, 'examples');
const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

async function check(file: string): Promise<string> {
  const { stdout, stderr } = await floodgateCommand(['check', file]);
  return stdout + stderr;
}

t.test('each example is valid and has no warning, and the page lists it', async (t) => {
  t.ok(files.length >= 4);
  const { text } = readPage('examples/README.md');
  for (const file of files) {
    const told = await check(`examples/${file}`);
    t.match(told, /no mistakes/, file);
    t.notMatch(told, /warning/, file);
    t.ok(text.includes(`(${file})`), `${file} is on the page`);
  }
});

t.test('Formbricks: the limits of this project, further policies, and a test for every row', async (t) => {
  const rows = (text: string): readonly string[] =>
    loadPolicies(text, 'formbricks.yaml').policies.map(({ route, limit, windowSeconds, identifier }) =>
      [route.text, limit, windowSeconds, identifier.name].join(' '),
    );
  const own = rows(readFileSync(join(projectRoot, 'policies.yaml'), 'utf8'));
  const example = rows(read('formbricks.yaml'));
  t.equal(own.length, 17);
  t.strictSame(example.slice(0, own.length), own);
  for (const row of [
    'POST /api/auth/sign-in/email 5 60 ip',
    'POST /api/auth/sign-in/email 40 3600 ip',
    'POST /api/auth/sign-up/email 3 60 ip',
    'POST /api/auth/request-password-reset 3 60 ip',
    'POST /api/auth/two-factor/* 5 60 ip',
    '* /api/mcp 100 60 ip',
    '* /api/v2/client/{workspaceId}/* 2000 60 path.workspaceId',
    'POST /api/v1/client/{workspaceId}/storage 100 60 path.workspaceId',
  ])
    t.ok(example.includes(row), row);

  const set = loadPolicies(read('formbricks.yaml'), 'formbricks.yaml');
  t.strictSame(runTests(set), []);
  for (const { name, bucket } of set.policies) {
    // A test that stops at the limit of this policy, whose last request is denied.
    const reached = set.tests.filter(
      ({ expect: { policies, allowed, status } }) =>
        policies?.includes(name) && status === 429 && allowed === limitOf(bucket),
    );
    if (name !== 'auth-sign-in.1h') t.ok(reached.length > 0, `${name} is tested at its limit`);
  }

  function limitOf(counter: string): number {
    return set.policies.find(({ bucket }) => bucket === counter)?.limit ?? 0;
  }
});
