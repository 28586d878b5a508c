/** What docs/cli.md shows is what the commands print. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgate } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/cli.md');

/** Digests and what is left of a window differ from run to run. */
function comparable(text: string): string {
  return text
    .replace(/(?<![\w-])[\w-]{22}(?![\w-])/g, 'DIGEST')
    .replace(/(reset: |;t=)\d+/g, '$1N')
    .trimEnd();
}

/** Words as a shell splits them; the page quotes with single quotes only. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '');
}

t.test('every command prints what is shown', async (t) => {
  const cwd = temporaryFolder(t);
  const limits = page.blocks.find(({ language }) => language === 'yaml')?.text ?? '';
  writeFileSync(join(cwd, 'limits.yaml'), limits);
  const edited = limits
    .replace('limit: 5', 'limit: 3')
    .replace('allowed: 5', 'allowed: 3')
    .replace('/health', '/status');
  writeFileSync(join(cwd, 'edited.yaml'), edited);
  const shown = page.blocks.filter(({ language }) => language === 'console');
  t.ok(shown.length >= 3);
  for (const { text } of shown) {
    for (const part of text.split(/^\$ npx floodgate /m).slice(1)) {
      const [command = '', ...output] = part.split('\n');
      const { stdout, stderr } = await floodgate(wordsOf(command), { cwd });
      t.equal(comparable(stdout + stderr), comparable(output.join('\n')), command);
    }
  }
});

t.test('every command has a section, and every section is a command', async (t) => {
  const { stdout } = await floodgate(['--help']);
  const commands = [...stdout.matchAll(/^ {2}floodgate ([a-z]+)/gm)].map(([, name]) => name);
  const sections = [...page.text.matchAll(/^## ([a-z]+)$/gm)].map(([, name]) => name);
  t.strictSame(sections.sort(), commands.filter((name) => name !== 'completion').sort());
});
