/** Checks every row of the project's own policies.yaml against the limits that the application no longer enforces. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { EDGE_TABLE } from '#test/support/edge-table.ts';

const FILE = resolve(import.meta.dirname, '../../../policies.yaml');

const set = loadPolicies(readFileSync(FILE, 'utf8'), 'policies.yaml');
const match = createMatcher(set);

function matched(method: string, path: string): string[] {
  const result = match(method, path);
  return result.ok ? (result.cover?.policies ?? []).map(({ name }) => name) : ['400'];
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

t.test('which policies apply to paths of the table and near them', async (t) => {
  const cases: readonly (readonly [method: string, path: string, names: readonly string[]])[] = [
    ['POST', '/api/v1/management/storage', ['management', 'management-storage']],
    ['PUT', '/api/v1/management/storage', ['management']],
    ['GET', '/api/v1/management', ['management']],
    ['GET', '/api/v1/webhooks', ['webhooks']],
    ['DELETE', '/api/v1/webhooks/abc', ['webhooks']],
    ['DELETE', '/storage/w/public/a/b%20c.png', ['storage-public-delete']],
    ['DELETE', '/storage/w/private', []],
    ['GET', '/storage/w/public/a.png', []],
    ['POST', '/api/v1/client/w/responses/', ['client-v1-responses']],
    ['POST', '/api/v1/client/w/responses/r', []],
    ['PUT', '/api/v2/client/w/responses/r', ['client-v2-response']],
    ['GET', '/api/v1/client/og', []],
    ['GET', '/api/v2/health', []],
    ['GET', '/api/v2/client/w/environment', []],
    ['POST', '/api/v2/client/w/user', []],
    ['GET', '/api/v2/management/surveys', []],
    ['GET', '/api/v1/me', []],
    ['POST', '/api/auth/callback/credentials', ['auth-credentials']],
    ['POST', '/api/auth/callback/github', []],
    ['HEAD', '/api/v1/management/surveys/', ['management']],
    ['OPTIONS', '/api/v1/management/surveys', []],
    ['GET', '/x/api/v1/management/surveys', []],
    ['GET', '/', []],
  ];
  for (const [method, path, names] of cases) t.strictSame(matched(method, path), names, `${method} ${path}`);
});
