/** Nothing in the repository points to a document that is not in the repository. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { projectFiles } from './pages.ts';

// Written in parts, so that this file does not find itself.
const word = (...parts: readonly string[]): string => parts.join('');
const SECTION = '§';
const outside: readonly RegExp[] = [
  new RegExp(
    `\\b(?:${word('SP', 'EC')}|${word('GATE', 'WAY')}|${word('PERFOR', 'MANCE')}|${word('ST', 'YLE')})\\.md\\b`,
  ),
  new RegExp(`\\b${word('SP', 'EC')}\\b(?!-)`),
  new RegExp(`\\b[Ss]pec(?:ification)? (?:section|${SECTION})`),
  new RegExp(`\\b${word('con', 'tract')}/`),
  new RegExp(`\\b${word('con', 'tract')} (?:[\\w-]+\\.md|README|${SECTION})`),
  new RegExp(
    `\\b(?:auth|client-api|errors|management-api|observed|storage|v2-v3|webhooks-and-events)\\.md ?${SECTION}`,
  ),
  new RegExp(`${word('..', '/', 'shared')}/(?:${word('SP', 'EC')}|${word('con', 'tract')})`),
  new RegExp(word('/work', '/shared')),
  new RegExp(`\\b[Tt]he (?:${word('con', 'tract')}|${word('specifi', 'cation')})\\b`),
];

/** Generated or binary files. */
const SKIPPED = /(?:^|\/)package-lock\.json$|\.(?:png|ico|woff2?)$/;

for (const file of projectFiles()) {
  if (SKIPPED.test(file)) continue;
  const found = readFileSync(join(projectRoot, file), 'utf8')
    .split('\n')
    .flatMap((line, i) =>
      outside.some((pattern) => pattern.test(line)) ? [`${file}:${i + 1}: ${line.trim()}`] : [],
    );
  t.strictSame(found, [], `${file} cites no private page`);
}
