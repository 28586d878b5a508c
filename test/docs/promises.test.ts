/** docs/promises.md has exactly the rows that `npm run audit` runs. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { PROMISES } from '#test/promises/rows.ts';
import { projectRoot } from '#test/support/process.ts';
import { readPage } from './pages.ts';

const HEAD = '| Promise | Test that holds it | Not covered |\n|---|---|---|\n';

const link = (file: string): string => `[${file.replace(/^.*\//, '').replace('.test.ts', '')}](../${file})`;

t.test('each row is whole, and its files exist', async (t) => {
  for (const { promise, tests, notCovered } of PROMISES) {
    t.match(promise, /^[A-Z].*\.$/, promise);
    t.not(notCovered, '', promise);
    t.ok(tests.length > 0, promise);
    for (const file of tests) t.ok(existsSync(join(projectRoot, file)), file);
  }
});

t.test('the page has these rows', async (t) => {
  const page = readPage('docs/promises.md');
  const [before = ''] = page.text.split(HEAD);
  const rows = PROMISES.map(
    ({ promise, tests, notCovered }) => `| ${promise} | ${tests.map(link).join(', ')} | ${notCovered} |\n`,
  );
  const wanted = before + HEAD + rows.join('');
  // `UPDATE=1 npx node test/docs/promises.test.ts` writes the rows.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, 'run UPDATE=1 npx node test/docs/promises.test.ts');
});
