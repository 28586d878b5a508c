/**
 * Runs every regular expression of api/ on long texts that are made for it. There is no time limit: a linear one takes
 * milliseconds, a quadratic one longer than the test may take, and an exponential one far longer.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

const LENGTH = 2 * 1_048_576;

/** Expressions for texts of a bounded length, with the bound. */
const bounded: Readonly<Record<string, number>> = {
  // A User-Agent is cut before it is matched.
  '\\biPad\\b|\\bTablet\\b|\\bAndroid\\b(?!.*\\bMobile\\b)': 1_024,
  // The operator writes these settings.
  '^([^<>\\p{Cc}]*)<([^<>]+)>$': 1_000,
  '^[^\\s@<>,;:"\\\\]+@[^\\s@<>,;:"\\\\]+$': 1_000,
  '\\/+$': 1_000,
  '^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$': 1_000,
  // Node bounds headers.
  '^bearer +(fbk_\\S+)\\s*$': 16_384,
  // These are names of files in a path.
  '\\.([^./\\\\]+)$': 16_384,
  '--fid--[0-9a-f-]{36}(?=\\.[^.]*$)': 16_384,
};

interface Expression {
  readonly source: string;
  readonly flags: string;
  readonly file: string;
}

/** Matches literals where an expression may begin, but not `new RegExp('…')`. SCHEMA matches patterns of schemas. */
const LITERAL =
  /(?:[=(,:[!&|?{};]|return|=>)\s*\/(?![*/])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n`])+)\/([dgimsuvy]*)/g;
const SCHEMA = /(?:pattern:|Pattern =|_PATTERN =)\s*'((?:\\.|[^'\\\n])+)'/g;

const expressions: readonly Expression[] = globSync('api/**/*.ts', { cwd: projectRoot })
  .sort()
  .flatMap((file) => {
    const text = readFileSync(join(projectRoot, file), 'utf8').replaceAll(/^\s*(\*|\/\/|\/\*).*$/gm, '');
    return [
      ...[...text.matchAll(LITERAL)].map(([, source = '', flags = '']) => ({ source, flags, file })),
      ...[...text.matchAll(SCHEMA)].map(([, source = '']) => ({
        source: source.replaceAll('\\\\', '\\'),
        flags: '',
        file,
      })),
    ];
  });

/** Returns the characters of the expression, and some for its classes. */
function alphabetOf({ source }: Expression): readonly string[] {
  const literal = source.replaceAll(/\\[pP]\{[^}]*\}|\\[a-zA-Z]|\{\d*,?\d*\}/g, '');
  const own = [...new Set(literal.replaceAll(/[\\^$()[\]?*+{}|]/g, ''))].slice(0, 12);
  return [...new Set([...own, 'a', '1', ' ', '.', '/', '%'])];
}

/** Returns the words of the expression, such as `/storage/`. An attack repeats them. */
function wordsOf({ source }: Expression): readonly string[] {
  return (source.replaceAll('\\', '').match(/[\w/.:#@<>-]{2,}/g) ?? []).slice(0, 6);
}

/** Repeats a word with something after it, or one or two of the characters. */
function* textsFor(expression: Expression, length: number): Generator<string> {
  const alphabet = alphabetOf(expression);
  const few = alphabet.slice(0, 6);
  const words = wordsOf(expression);
  const long = [...few, ...words, ...words.flatMap((word) => few.map((character) => word + character))];
  for (const part of long) yield repeated(part, length);
  // This length is enough to tell linear from exponential.
  for (const one of alphabet) for (const other of few) yield repeated(one + other, Math.min(length, 131_072));
}

function repeated(part: string, length: number): string {
  return `${part.repeat(Math.floor(length / part.length))}\n!`;
}

t.test('finds all regular expressions', async (t) => {
  t.ok(expressions.length > 80, `${expressions.length}`);
  for (const source of Object.keys(bounded)) {
    t.ok(
      expressions.some((expression) => expression.source === source),
      `${source} is still there`,
    );
  }
});

const files = Map.groupBy(expressions, ({ file }) => file);
for (const [file, found] of files) {
  t.test(`${file}: ${found.length} finish on the longest texts`, async (t) => {
    for (const expression of found) {
      const length = Math.min(bounded[expression.source] ?? LENGTH, LENGTH);
      const pattern = new RegExp(expression.source, expression.flags.replace('y', ''));
      for (const text of textsFor(expression, length)) {
        pattern.lastIndex = 0;
        pattern.test(text);
      }
    }
    t.pass(`${found.length}`);
  });
}
