/** Where one operator or constant of a source can be changed, and into what. Comments and texts stay; Lua and SQL in templates count. */
import { stripTypeScriptTypes } from 'node:module';

export interface Place {
  readonly file: string;
  readonly at: number;
  /** Counted from 1. */
  readonly line: number;
  readonly old: string;
  readonly new: string;
}

/** The formatter puts spaces around operators, so those of types and of arrow functions do not look like these. */
const CHANGES: Readonly<Record<string, string>> = {
  ' < ': ' <= ',
  ' <= ': ' < ',
  ' > ': ' >= ',
  ' >= ': ' > ',
  ' === ': ' !== ',
  ' !== ': ' === ',
  ' == ': ' ~= ',
  ' ~= ': ' == ',
  ' && ': ' || ',
  ' || ': ' && ',
  ' and ': ' or ',
  ' or ': ' and ',
  ' + ': ' - ',
  ' - ': ' + ',
  ' * ': ' / ',
  ' / ': ' * ',
  ' % ': ' * ',
  '(!': '(',
  true: 'false',
  false: 'true',
  'min(': 'max(',
  'max(': 'min(',
};
const COMMENT = String.raw`\/\*[\s\S]*?\*\/|\/\/[^\n]*|^\s*--[^\n]*`;
const TEXT = String.raw`'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"`;
const PATTERN = String.raw`(?<=[(=,:&|?] ?)\/(?![*/ ])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[dgimsuvy]*`;
const escaped = Object.keys(CHANGES).map((text) =>
  /^\w+$/.test(text) ? `\\b${text}\\b` : RegExp.escape(text),
);
const NUMBER = String.raw`(?<![\w.$'])\d[\d_]*(?:\.\d+)?(?![\w.])`;
const TOKEN = new RegExp(`(?<skip>${COMMENT}|${TEXT}|${PATTERN})|${escaped.join('|')}|${NUMBER}`, 'gm');
/** The words of messages are not code: `and` and `or` are changed in Lua and SQL alone. */
const WORD = /^ (?:and|or) $/;
const OTHER_LANGUAGE = /redis\.p?call|\blocal \w+ = |\bsql`/;

const strip = (source: string): string | undefined => {
  try {
    // Types become spaces, as many as they had letters.
    return stripTypeScriptTypes(source).replace(/ +/g, ' ');
  } catch {
    return undefined;
  }
};

export const apply = (source: string, { at, old, new: changed }: Place): string =>
  source.slice(0, at) + changed + source.slice(at + old.length);

/** All places of a file that leave it readable to Node and change what it runs. */
export function placesOf(file: string, source: string): Place[] {
  const plain = strip(source);
  const places: Place[] = [];
  for (const match of source.matchAll(TOKEN)) {
    const [old] = match;
    if (match.groups?.skip !== undefined || (WORD.test(old) && !OTHER_LANGUAGE.test(source))) continue;
    const changed = CHANGES[old] ?? String(Number(old.replaceAll('_', '')) + 1);
    const line = source.slice(0, match.index).split('\n').length;
    const place = { file, at: match.index, line, old, new: changed };
    const result = strip(apply(source, place));
    if (result !== undefined && result !== plain) places.push(place);
  }
  return places;
}
