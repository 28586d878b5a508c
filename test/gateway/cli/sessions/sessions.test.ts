/**
 * Holds the pages of this folder: commands, and what they print. Each section (`##`) has a folder of its own, in which the
 * blocks with a file name stand as files. `⟦text*3⟧` stands for the text three times. After a command comes what it
 * prints on both outputs, in which `…` stands for anything; of a JSON document, members that are not shown do not matter.
 * `exit 1` at its end is the exit code, which otherwise is 0.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import t, { type Test } from 'tap';
import { difference, opened, parsePattern } from '#test/conversations/document.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const SECTION = /^## (?<title>.+)$|^```\w+(?: (?<file>\S+))?\n(?<text>[\s\S]*?)^```$/gm;
const repeated = (text: string): string =>
  text.replace(/⟦([^⟧]+)\*(\d+)⟧/g, (_, part: string, times: string) =>
    part.replaceAll('\\n', '\n').repeat(Number(times)),
  );

/** Splits a line as a shell does that knows single quotes alone. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare = '']) => quoted ?? bare);

function problemOf(wanted: string, stdout: string, stderr: string): string | null {
  if (wanted.startsWith('{')) return difference(opened(parsePattern(wanted)), JSON.parse(stdout), new Map());
  return difference(wanted, `${stdout}${stderr}`.trimEnd(), new Map(), 'the output');
}

async function run(t: Test, cwd: string, block: string, told: string): Promise<void> {
  for (const [, line = '', output = ''] of block.matchAll(/^\$ floodgate (.*)\n((?:(?!\$ ).*\n)*)/gm)) {
    const [, wanted = '', exit = '0'] = /^([\s\S]*?)(?:(?<=^|\n)exit (\d+)\n)?$/.exec(output) ?? [];
    const { code, stdout, stderr } = await floodgateCommand(wordsOf(line), { cwd });
    t.equal(code, Number(exit), `${told}: exit code of ${line}: ${stderr}`);
    if (wanted !== '') t.equal(problemOf(wanted.trimEnd(), stdout, stderr), null, `${told}: ${line}`);
  }
}

for (const file of globSync('*.md', { cwd: import.meta.dirname }).sort())
  t.test(basename(file, '.md'), async (t) => {
    const page = readFileSync(join(import.meta.dirname, file), 'utf8');
    let title = '';
    let cwd = '';
    for (const { groups = {} } of page.matchAll(SECTION)) {
      const { text = '' } = groups;
      if (groups.title !== undefined) [title, cwd] = [groups.title, temporaryFolder(t)];
      else if (groups.file !== undefined) writeFileSync(join(cwd, groups.file), repeated(text));
      else await run(t, cwd, text, title);
    }
  });
