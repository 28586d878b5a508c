/** The page of settings is the programs' own: every variable with its default and meaning. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { variables as API_VARIABLES } from '#api/config.ts';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import type { Variable } from '#shared/configuration.ts';
import { projectRoot } from '#test/support/process.ts';
import { pages, readPage } from './pages.ts';

const page = readPage('docs/configuration.md');

function table(variables: readonly Variable[]): string {
  return variables
    .map(
      ({ name, default: value, meaning }) =>
        `| \`${name}\` | ${value === '' ? '' : `\`${value}\``} | ${meaning} |`,
    )
    .join('\n');
}

t.test('the tables of settings are those of the programs', async (t) => {
  // `UPDATE=1 npx node test/docs/configuration.test.ts` writes them.
  let wanted = page.text;
  for (const [prefix, variables] of [
    ['GATEWAY_', GATEWAY_VARIABLES],
    ['API_', API_VARIABLES],
  ] as const) {
    const rows = new RegExp(
      `(\\| variable \\| default \\| meaning \\|\\n\\|---\\|---\\|---\\|\\n)((?:\\| \`.*\\n)*\\| \`${prefix}.*\\n(?:\\| \`.*\\n)*|${prefix}TABLE\\n)`,
    );
    t.match(wanted, rows, `there is a table with ${prefix} variables`);
    wanted = wanted.replace(rows, (_, head: string) => `${head}${table(variables)}\n`);
  }
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, 'run UPDATE=1 npx node test/docs/configuration.test.ts');
});

t.test('every variable of ours that a page names exists', async (t) => {
  const known = new Set<string>([...GATEWAY_VARIABLES, ...API_VARIABLES].map(({ name }) => name));
  for (const { file, settled, blocks } of pages()) {
    const text = [settled, ...blocks.map((block) => block.text)].join('\n');
    for (const [name] of text.matchAll(
      /\b(?:GATEWAY|API|WEBHOOK|S3|BOOTSTRAP|RECAPTCHA|SMTP|MAIL|SESSION|STORAGE)_[A-Z0-9_]*[A-Z0-9]\b/g,
    )) {
      t.ok(known.has(name), `${file}: ${name}`);
    }
  }
});
