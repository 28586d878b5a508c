/** Parses the project's Markdown pages for the tests: links, headings as anchors, blocks. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '#test/support/process.ts';

export interface Block {
  /** The word after the opening fence, such as `sh`; '' if there is none. */
  readonly language: string;
  /** Ends with a line break. */
  readonly text: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
}

export interface Page {
  /** Path relative to the project, such as `docs/policies.md`. */
  readonly file: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** The text with blocks and comments blanked out, line by line. */
  readonly prose: string;
}

/** Returns every tracked or new file, relative to the project. */
export function projectFiles(): readonly string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  const deleted = execFileSync('git', ['ls-files', '-z', '--deleted'], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  const gone = new Set(deleted.split('\0'));
  return listed.split('\0').filter((file) => file !== '' && !gone.has(file));
}

export function pages(): readonly Page[] {
  return projectFiles()
    .filter((file) => file.endsWith('.md'))
    .map(readPage);
}

export function readPage(file: string): Page {
  const text = readFileSync(join(projectRoot, file), 'utf8');
  const blocks: Block[] = [];
  let fence = 0;
  let language = '';
  let content = '';
  const prose = text.split('\n').map((line, i) => {
    const opening = /^```(\S*)/.exec(line);
    if (fence === 0 && opening === null) return line;
    if (fence === 0) {
      fence = i + 1;
      language = opening?.[1] ?? '';
      content = '';
    } else if (opening !== null) {
      blocks.push({ language, text: content, line: fence });
      fence = 0;
    } else content += `${line}\n`;
    return '';
  });
  const outside = prose.join('\n');
  return { file, text, blocks, prose: withoutComments(outside) };
}

function withoutComments(text: string): string {
  return text.replace(/<!--[\s\S]*?-->/g, '');
}

/** Returns the anchors that GitHub gives to the headings of a page. */
export function anchorsOf({ prose }: Page): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of prose.matchAll(/^#{1,6} +(.*)$/gm)) {
    const anchor = heading
      .trim()
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    let unique = anchor;
    for (let n = 1; anchors.has(unique); n++) unique = `${anchor}-${n}`;
    anchors.add(unique);
  }
  return anchors;
}

/** Returns the rows of the table whose head begins with these cells, without the markup of code. */
export function tableOf({ text, file }: Page, ...head: readonly string[]): readonly (readonly string[])[] {
  const rows = text.split('\n').map((line) =>
    line.startsWith('|')
      ? line
          .slice(1, line.lastIndexOf('|'))
          .split(/(?<!\\)\|/)
          .map((cell) => cell.replace(/<!--.*?-->/g, '').trim())
      : null,
  );
  const at = rows.findIndex((cells) => cells !== null && head.every((cell, i) => cells[i] === cell));
  if (at < 0) throw new Error(`${file} has no table that begins with ${head.join(' | ')}`);
  const end = rows.findIndex((cells, i) => i > at && cells === null);
  return rows.slice(at + 2, end < 0 ? rows.length : end).map((cells) => cells ?? []);
}

/** Returns the text between backticks in a cell, or the whole cell without backticks. */
export function codeIn(cell: string): string {
  return /`([^`]+)`/.exec(cell)?.[1] ?? cell;
}
