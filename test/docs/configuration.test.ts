/** The page of settings agrees with the programs: it has every variable once, with its default and meaning. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { variables as API_VARIABLES } from '#api/config.ts';
import { GATEWAY_VARIABLES } from '#gateway/config.ts';
import type { Variable } from '#shared/configuration.ts';
import { projectRoot } from '#test/support/process.ts';
import { pages, readPage } from './pages.ts';

/** Maximum number of settings. Before adding one, look for a setting that can go or that belongs in an address. */
const SETTINGS_MAX = 69;
const EVERYDAY_SETTINGS = 12;

const page = readPage('docs/configuration.md');
const known = new Map<string, Variable>(
  [...GATEWAY_VARIABLES, ...API_VARIABLES].map((variable) => [variable.name, variable]),
);

const ROW = /^\| `([A-Z0-9_]+)` \|.*$/gm;
const namesIn = (text: string): string[] => [...text.matchAll(ROW)].map(([, name = '']) => name);

function row({ name, default: value, meaning }: Variable): string {
  return `| \`${name}\` | ${value === undefined ? '' : `\`${value}\``} | ${meaning} |`;
}

t.test('every setting has one row, with the default and text of the program', async (t) => {
  t.strictSame(namesIn(page.text).toSorted(), [...known.keys()].toSorted(), 'every setting has one row');
  // `UPDATE=1 npx node test/docs/configuration.test.ts` writes the rows. You choose their position.
  const wanted = page.text.replace(ROW, (text, name: string) => {
    const variable = known.get(name);
    return variable === undefined ? text : row(variable);
  });
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, page.file), wanted);
  else t.equal(page.text, wanted, 'run UPDATE=1 npx node test/docs/configuration.test.ts');
});

t.test(
  'the page begins with the most common settings, and there are at most as many as allowed',
  async (t) => {
    const [, everyday = ''] = page.text.split('\n## ');
    t.match(everyday, /^The settings that everybody sets/);
    t.equal(namesIn(everyday).length, EVERYDAY_SETTINGS);
    t.ok(known.size <= SETTINGS_MAX, `${known.size} settings`);
  },
);

t.test('every variable of this project that a page names exists', async (t) => {
  // Documents of tests have names of their own.
  for (const { file, prose, blocks } of pages().filter((page) => !page.file.startsWith('test/'))) {
    const text = [prose, ...blocks.map((block) => block.text)].join('\n');
    for (const [name] of text.matchAll(
      /\b(?:GATEWAY|API|DATABASE|WEBHOOK|S3|BOOTSTRAP|RECAPTCHA|SMTP|MAIL|SESSION|STORAGE)_[A-Z0-9_]*[A-Z0-9]\b/g,
    )) {
      t.ok(known.has(name), `${file}: ${name}`);
    }
  }
});
