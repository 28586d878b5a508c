/** Every link of every page works: the files and the headings of anchors exist. */
import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { anchorsOf, pages, projectFiles } from './pages.ts';

const all = pages();
const byFile = new Map(all.map((page) => [page.file, page]));
const tracked = new Set(projectFiles());

/** Returns targets of `[text](target)`, `![alt](target)` and `[name]: target`, outside of code. */
function linksIn(prose: string): readonly string[] {
  const text = prose.replace(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ' '));
  const inline = [...text.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)];
  const named = [...text.matchAll(/^\[[^\]]+\]:\s+(\S+)/gm)];
  return [...inline, ...named].map(([, target = '']) => target);
}

t.ok(all.length > 15);
for (const page of all) {
  t.test(page.file, async (t) => {
    for (const link of linksIn(page.prose)) {
      if (/^[a-z]+:/.test(link)) {
        t.match(link, /^https:\/\/[^/]+/, `${link} uses https`);
        continue;
      }
      const [path = '', anchor] = link.split('#');
      const file = path === '' ? page.file : normalize(join(dirname(page.file), decodeURIComponent(path)));
      const isOurs =
        tracked.has(file) || [...tracked].some((one) => one.startsWith(`${file.replace(/\/$/, '')}/`));
      t.ok(file === '.' || isOurs, `${link}: ${file} is in the repository`);
      if (anchor === undefined) continue;
      const target = byFile.get(file);
      t.ok(target !== undefined && anchorsOf(target).has(anchor), `${link}: the heading exists`);
    }
  });
}

t.test('every page can be found from the README', async (t) => {
  const reached = new Set(['README.md']);
  for (const file of reached) {
    const page = byFile.get(file);
    for (const link of page === undefined ? [] : linksIn(page.prose)) {
      const [path = ''] = link.split('#');
      if (path === '' || /^[a-z]+:/.test(link)) continue;
      const target = normalize(join(dirname(file), path));
      if (byFile.has(target)) reached.add(target);
    }
  }
  for (const { file } of all) t.ok(reached.has(file), file);
});

t.test('every path of the project that a page names exists', async (t) => {
  for (const { file, prose } of all) {
    for (const [, path = ''] of prose.matchAll(/`((?:gateway|api|bench|test|examples|docs)\/[\w./-]+)`/g)) {
      t.ok(existsSync(join(projectRoot, path)), `${file}: ${path}`);
    }
  }
});
