/** The README is true: its tables are the programs' own, its commands exist. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { variables as API_VARIABLES } from '#api/config.ts';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import type { Variable } from '#shared/configuration.ts';
import { projectRoot } from '#test/support/process.ts';

const file = join(projectRoot, 'README.md');
const readme = readFileSync(file, 'utf8');

function table(variables: readonly Variable[]): string {
  return variables
    .map(
      ({ name, default: value, meaning }) =>
        `| \`${name}\` | ${value === '' ? '' : `\`${value}\``} | ${meaning} |`,
    )
    .join('\n');
}

t.test('the tables of settings are those of the programs', async (t) => {
  // `UPDATE=1 npx tap test/readme.test.ts` writes them.
  let wanted = readme;
  for (const [prefix, variables] of [
    ['GATEWAY_', GATEWAY_VARIABLES],
    ['API_', API_VARIABLES],
  ] as const) {
    const rows = new RegExp(
      `(\\| variable \\| default \\| meaning \\|\\n\\|---\\|---\\|---\\|\\n)((?:\\| \`.*\\n)*\\| \`${prefix}.*\\n(?:\\| \`.*\\n)*|${prefix}TABLE\\n)`,
    );
    t.match(wanted, rows, `the README has a table with ${prefix} variables`);
    wanted = wanted.replace(rows, (_, head: string) => `${head}${table(variables)}\n`);
  }
  if (process.env.UPDATE === '1') writeFileSync(file, wanted);
  else t.equal(readme, wanted, 'run UPDATE=1 npx tap test/readme.test.ts');
});

t.test('every npm script that it names exists', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  const named = new Set(
    [...readme.matchAll(/npm (?:run )?(start|test|[a-z]+:[a-z]+|check|bench)\b/g)].map(([, name]) => name),
  );
  t.ok(named.size >= 4);
  for (const name of named) t.type(scripts[name ?? ''], 'string', String(name));
});
