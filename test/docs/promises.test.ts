/** docs/promises.md has exactly the rows that `npm run audit` runs. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { PROMISES } from '#test/promises/rows.ts';
import { projectRoot } from '#test/support/process.ts';
import { readPage } from './pages.ts';

const HEAD = '| Promise | Test that holds it | To repeat more of it | Not covered |\n|---|---|---|---|\n';

const link = (file: string): string => `[${file.replace(/^.*\//, '').replace('.test.ts', '')}](../${file})`;

t.test('each row is whole, and its files and commands exist', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  for (const { promise, tests, repeat, notCovered } of PROMISES) {
    t.match(promise, /^[A-Z].*\.$/, promise);
    for (const text of [repeat, notCovered]) t.not(text, '', promise);
    t.ok(tests.length > 0, promise);
    const named = repeat.match(/test\/\S+\.ts/g) ?? [];
    for (const file of [...tests, ...named]) t.ok(existsSync(join(projectRoot, file)), file);
    const [, script = 'test'] = /npm run (\S+)/.exec(repeat) ?? [];
    t.ok(script in scripts, `npm run ${script}`);
  }
});

t.test('the page has these rows', async (t) => {
  const page = readPage('docs/promises.md');
  const [before = ''] = page.text.split(HEAD);
  const rows = PROMISES.map(
    ({ promise, tests, repeat, notCovered }) =>
      `| ${promise} | ${tests.map(link).join(', ')} | \`${repeat}\` | ${notCovered} |\n`,
  );
  const wanted = before + HEAD + rows.join('');
  // `UPDATE=1 npx node test/docs/promises.test.ts` writes the rows.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, 'run UPDATE=1 npx node test/docs/promises.test.ts');
});
