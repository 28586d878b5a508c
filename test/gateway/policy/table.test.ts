/** Checks every row of the project's own policies.yaml against the limits that the application no longer enforces. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { EDGE_TABLE } from '#test/support/edge-table.ts';

const FILE = resolve(import.meta.dirname, '../../../policies.yaml');

const set = loadPolicies(readFileSync(FILE, 'utf8'), 'policies.yaml');
const match = createMatcher(set);

function matched(method: string, path: string): string {
  const result = match(method, path);
  if (!result.ok) return '400';
  return (result.cover?.policies ?? []).map(({ name }) => name).join(' ') || 'none';
}

t.test('the file has exactly the rows of the table, in order', async (t) => {
  t.equal(EDGE_TABLE.length, 17);
  t.strictSame(
    set.policies.map(({ route, limit, windowSeconds, identifier }) => {
      const [methods = '', path = ''] = route.text.split(' ');
      return {
        methods: methods.split(','),
        // A file name may contain slashes: `{param*}`.
        path: path.replace('*}', '}'),
        limit,
        windowSeconds,
        identifier: identifier.name,
      };
    }),
    EDGE_TABLE,
  );
});

const NEAR = 'Paths of the table and near them';

t.test(NEAR, async (t) => {
  for (const [request = '', names] of casesUnder(join(import.meta.dirname, 'table.md'), NEAR)) {
    const [method = '', path = ''] = request.split(' ');
    t.equal(matched(method, path), names, request);
  }
});
