/** Reads documents whose code blocks have a case in each line: `input → expected`. Tests name them by their headings. */
import { readFileSync } from 'node:fs';

export interface ArrowCases {
  readonly heading: string;
  /** The texts between the arrows. */
  readonly cases: readonly (readonly string[])[];
}

export function arrowCases(file: string): ArrowCases[] {
  const sections = readFileSync(file, 'utf8').split(/^## /m).slice(1);
  return sections.map((section) => {
    const [heading = ''] = section.split('\n', 1);
    const [, block = ''] = /^```\n([\s\S]*?)^```$/m.exec(section) ?? [];
    if (!block.includes(' → ')) throw new Error(`${file} has no case under ${heading}`);
    const cases = block
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' → ').map(meant));
    return { heading, cases };
  });
}

export function casesUnder(file: string, heading: string): ArrowCases['cases'] {
  const found = arrowCases(file).find((section) => section.heading === heading);
  if (found === undefined) throw new Error(`${file} has no heading ${heading}`);
  return found.cases;
}

/** `\x00` and `\u0000` stand for a code unit, and `(empty)` for nothing. */
function meant(text: string): string {
  if (text === '(empty)') return '';
  return text.replace(
    /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|(\\))/g,
    (_, byte?: string, unit?: string, backslash?: string) =>
      backslash ?? String.fromCharCode(Number.parseInt(byte ?? unit ?? '', 16)),
  );
}
