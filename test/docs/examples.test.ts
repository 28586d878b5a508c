/** Every example is a policy file without mistakes, checked by the command that its page names. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { readPage } from './pages.ts';

const folder = join(projectRoot, 'examples');
const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

const check = async (file: string): Promise<string> => (await floodgateCommand(['check', file])).stdout;

t.test('each has no mistakes, and the page lists it', async (t) => {
  t.ok(files.length >= 4);
  const { text } = readPage('examples/README.md');
  for (const file of files) {
    t.match(await check(`examples/${file}`), /no mistakes/, file);
    t.ok(text.includes(`(${file})`), `${file} is on the page`);
  }
});

t.test('Formbricks: the table of this project, and the newer login, which is off', async (t) => {
  const routes = (text: string): readonly string[] =>
    loadPolicies(text, 'formbricks.yaml').policies.map(({ route, limit, windowSeconds, identifier }) =>
      [route.text, limit, windowSeconds, identifier.name].join(' '),
    );
  const own = routes(readFileSync(join(projectRoot, 'policies.yaml'), 'utf8'));
  const example = read('formbricks.yaml');
  t.strictSame(routes(example), own);

  const switchedOn = example.replace(
    /^ {2}# (- name: auth-sign-in-email\n(?: {2}# .*\n)*)/m,
    (_, row: string) => `  ${row.replaceAll('  # ', '  ')}`,
  );
  t.strictSame(
    routes(switchedOn).filter((row) => !own.includes(row)),
    ['POST /api/auth/sign-in/email 40 3600 ip'],
  );
  const file = join(temporaryFolder(t), 'on.yaml');
  writeFileSync(file, switchedOn);
  t.match(await check(file), /18 policies/);
});

t.test('plans: its tests pass, and a key is counted by minute, by day and by its address', async (t) => {
  const set = loadPolicies(read('plans.yaml'), 'plans.yaml');
  t.strictSame(runTests(set), []);
  t.equal(set.tests.length, 3);
  const matched = createMatcher(set)('GET', '/api/items');
  t.ok(matched.ok);
  t.strictSame(matched.ok && matched.cover?.policies.map(({ name }) => name), [
    'api-minute',
    'api-day',
    'address',
  ]);
});
