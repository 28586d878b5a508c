/** test/system/neighbours/README.md has one row for each test of test/system/neighbours. */
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { packagesOf } from '#test/runner/servers.ts';
import { NEIGHBOURS, type NeighbourRow } from '#test/support/neighbour-rows.ts';
import { projectRoot } from '#test/support/process.ts';
import { readPage } from './pages.ts';

const FOLDER = 'test/system/neighbours';
const HEAD = '| Program | Package | What the test does | Test |\n|---|---|---|---|\n';
const TITLES = { application: '## Applications\n\n', client: '## Clients\n\n' } as const;

t.test('each test has a row, and each row a test', async (t) => {
  const files = globSync(`${FOLDER}/*.test.ts`, { cwd: projectRoot });
  const named = NEIGHBOURS.map(({ file }) => `${FOLDER}/${file}.test.ts`);
  t.strictSame(files.sort(), named.sort());
});

t.test('the page has these rows', async (t) => {
  const page = readPage('test/system/neighbours/README.md');
  const [before = ''] = page.text.split(TITLES.application);
  const tables = (['application', 'client'] as const).map((kind) => {
    const rows = NEIGHBOURS.filter(({ is }) => is === kind);
    return TITLES[kind] + HEAD + rows.map(lineOf).join('');
  });
  const wanted = before + tables.join('\n');
  // `UPDATE=1 npx node test/docs/neighbours.test.ts` writes the rows.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, 'run UPDATE=1 npx node test/docs/neighbours.test.ts');
});

function lineOf({ file, name, programs, tried }: NeighbourRow): string {
  const used = packagesOf(programs).map((name) => `\`${name}\``);
  return `| ${name} | ${used.join(', ') || 'Node.js'} | ${tried} | [${file}](${file}.test.ts) |\n`;
}
