/** The API does not limit what the gateway limits. Each other route has a limit. */
import { join } from 'node:path';
import t from 'tap';
import type { Principal } from '#api/auth/principal.ts';
import { limitOf } from '#api/limits/plugin.ts';
import { gatewayRoutes } from '#api/surfaces/client.ts';
import { gatewayPrefixes } from '#api/surfaces/management.ts';
import { surfaceOf } from '#api/surfaces/surfaces.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { EDGE_TABLE } from '#test/support/edge-table.ts';

t.test('the lists have the rows of the policy file at the edge', async (t) => {
  const client = EDGE_TABLE.filter(({ path }) => path.includes('/client/')).map(
    ({ methods, path }) => `${methods[0]} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
  );
  t.strictSame([...gatewayRoutes].sort(), client.sort());
  const prefixes = EDGE_TABLE.filter(({ path }) => path.endsWith('/*')).map(({ path }) => path.slice(0, -2));
  t.strictSame([...gatewayPrefixes].sort(), prefixes.sort());
});

const permissions = new Map();
const key: Principal = {
  kind: 'apiKey',
  apiKeyId: 'k',
  organizationId: 'o',
  permissions,
};
const session: Principal = { kind: 'session', userId: 'u', organizationIds: [], permissions };

const callers: Readonly<Record<string, Principal>> = { key, session };

t.test('each route has the limit of limits.md', async (t) => {
  const cases = casesUnder(join(import.meta.dirname, 'limits.md'), 'Method, route, caller and limit');
  for (const [request = '', caller = '', limit] of cases) {
    const [method = '', route = ''] = request.split(' ');
    const principal = callers[caller] ?? null;
    t.equal(
      limitOf(surfaceOf(route).limit, { method, route, principal }) ?? 'none',
      limit,
      `${request}, ${caller}`,
    );
  }
});
