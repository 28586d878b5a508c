/** Tests the warnings about policies that are valid but probably mistakes: each kind with its line, and no others. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';

const HEAD = `version: 1
identifiers:
  ip: { source: client-address }
`;

interface Section {
  readonly title: string;
  readonly cases: readonly {
    /** The lines of the policy file. */
    readonly policies: string;
    readonly identifiers?: string;
    readonly warns: readonly string[];
  }[];
}

const indented = (lines: string): string => lines.replace(/^(?=.)/gm, '  ');
const sections: readonly Section[] = parse(readFileSync(join(import.meta.dirname, 'warnings.yaml'), 'utf8'));

for (const { title, cases } of sections)
  t.test(title, async (t) => {
    for (const { policies, identifiers = '', warns } of cases) {
      const text = `${HEAD}${indented(identifiers)}policies:\n${indented(policies)}`;
      const set = loadPolicies(text, 'p.yaml', () => '203.0.113.0/24 AS64500\n');
      const found = warningsOf(set, placesIn(text)).map(
        ({ line, column, message, fix }) => `${line}:${column} ${message}; ${fix}`,
      );
      t.strictSame(found, warns, policies);
    }
  });

t.test('warns of networks under never that the file does not have', async (t) => {
  const site = (more = '') => `name: site, route: GET /a, identifier: ip, limit: 10, window: 1m${more}`;
  const told = (regulars: string, ...rows: string[]): string[] => {
    const text = `${HEAD}regulars: ${regulars}\npolicies:\n${rows.map((row) => `  - { ${row} }`).join('\n')}\n`;
    const set = loadPolicies(text, 'p.yaml', () => '192.0.2.0/24 AS64500\n198.51.100.0/24 7\n');
    return warningsOf(set, placesIn(text)).map(({ line, column, message }) => `${line}:${column} ${message}`);
  };
  const newcomers = ', newcomers: { limit: 5, window: 1m }';
  t.strictSame(told('{ never: { network: n.txt, name: [AS64501, 7, AS64500, 8] } }', site(newcomers)), [
    '4:44 n.txt has no network of AS64501',
    '4:44 n.txt has no network of 8',
  ]);
});
