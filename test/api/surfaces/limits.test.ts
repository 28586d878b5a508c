/** The API does not limit what the gateway limits. Each other route has a limit. */
import t from 'tap';
import type { Principal } from '#api/auth/principal.ts';
import { limitOf } from '#api/limits/plugin.ts';
import { gatewayRoutes } from '#api/surfaces/client.ts';
import { gatewayPrefixes } from '#api/surfaces/management.ts';
import { surfaceOf } from '#api/surfaces/surfaces.ts';
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

const cases: readonly (readonly [
  method: string,
  route: string,
  caller: Principal | null,
  limit: string | null,
])[] = [
  ['GET', '/api/v1/management/surveys', session, 'api.v1'],
  ['GET', '/api/v1/management/surveys', key, null],
  ['GET', '/api/v1/management/me', key, null],
  ['GET', '/api/v1/management/me', session, 'api.v1'],
  ['GET', '/api/v1/me', key, 'api.v1'],
  ['GET', '/api/v1/me', session, 'api.v1'],
  ['GET', '/api/v1/responses', key, 'api.v1'],
  ['GET', '/api/v1/webhooks', key, null],
  ['GET', '/api/v1/webhooks/:webhookId', key, null],
  ['GET', '/api/v1/webhooks', session, 'api.v1'],
  ['GET', '/api/v1/integrations', session, 'api.v1'],
  ['GET', '/api/v2/me', key, 'api.v2'],
  ['GET', '/api/v2/management/responses', key, 'api.v2'],
  ['GET', '/api/v3/surveys', key, 'api.v3'],
  ['GET', '/api/v3/surveys', session, 'api.v3'],
  ['GET', '/api/v1/client/og', null, 'api.client'],
  ['GET', '/api/v1/client/:workspaceId/environment', null, null],
  ['HEAD', '/api/v1/client/:workspaceId/environment', null, null],
  ['GET', '/api/v2/client/:workspaceId/environment', null, 'api.client'],
  ['POST', '/api/v1/client/:workspaceId/user', null, null],
  ['POST', '/api/v2/client/:workspaceId/user', null, 'api.client'],
  ['POST', '/api/v2/client/:workspaceId/storage', null, null],
  ['PUT', '/api/v1/client/:workspaceId/displays/:displayId', null, 'api.client'],
  ['GET', '/api/v1/client/:workspaceId/app/environment', null, 'api.client'],
  ['GET', '/health', null, null],
  ['POST', '/api/auth/callback/credentials', null, null],
  ['POST', '/api/auth/callback/token', null, null],
  ['GET', '/storage/:workspaceId/:accessType/*', session, null],
];
for (const [method, route, caller, limit] of cases) {
  const who = caller?.kind ?? 'nothing';
  t.test(`${method} ${route} with ${who}: ${limit ?? 'not limited here'}`, async (t) => {
    t.equal(limitOf(surfaceOf(route).limit, { method, route, principal: caller }), limit);
  });
}
