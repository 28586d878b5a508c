/** Everything that the pages tell people to run exists: npm scripts, and the files in commands. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readCall } from '#bench/program.ts';
import { projectRoot } from '#test/support/process.ts';
import { pages } from './pages.ts';

const { scripts } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
const all = pages();

t.test('every npm script that a page names exists', async (t) => {
  let count = 0;
  for (const { file, text } of all) {
    for (const [, name = ''] of text.matchAll(
      /\bnpm (?:run (?:-s )?)?(start|test|[a-z]+:[a-z]+|check|bench)\b/g,
    )) {
      t.type(scripts[name], 'string', `${file}: npm run ${name}`);
      count += 1;
    }
  }
  t.ok(count > 10);
});

t.test('every file that a command names exists', async (t) => {
  let count = 0;
  for (const { file, blocks } of all) {
    for (const { text, language } of blocks) {
      if (language !== 'sh') continue;
      for (const [, path = ''] of text.matchAll(
        /\b(?:npm test --|npx node|node|bash|cp) ([\w./-]+\.(?:ts|yaml)|\.ci\/run)/g,
      )) {
        // A clone in a folder of this name, next to the files of another project.
        t.ok(existsSync(join(projectRoot, path.replace(/^floodgate\//, ''))), `${file}: ${path}`);
        count += 1;
      }
    }
  }
  t.ok(count > 3);
});

t.test('every benchmark command that a page names exists', async (t) => {
  const called = new Set<string>();
  for (const { file, text } of all) {
    for (const [, line = ''] of text.matchAll(/npm run (?:--silent )?bench(?: -- ([^\n#`>]*))?/g)) {
      if (line.includes('--help')) continue;
      const argv = line.split(' ').filter(Boolean);
      await t.resolves(readCall(argv), `${file}: npm run bench -- ${line}`);
      called.add(argv[0] ?? '');
    }
  }
  t.ok(called.size > 4);
});
