import t from 'tap';
import { surfaceOf } from '#api/surfaces/surfaces.ts';

const cases: readonly (readonly [
  path: string,
  name: string,
  errorShape: string,
  credentials: string | null,
])[] = [
  ['/api/v1/client/ws1/environment', 'client', 'v1', null],
  ['/api/v2/client/ws1/responses?x=1', 'client', 'v1', null],
  ['/api/v1/management/surveys', 'management', 'v1', 'any'],
  ['/api/v1/management', 'management', 'v1', 'any'],
  ['/api/v1/webhooks', 'management', 'v1', 'any'],
  ['/api/v1/webhooks/x', 'management', 'v1', 'any'],
  ['/api/v1/webhooksx', 'pages', 'v1', null],
  ['/api/v1/me', 'management', 'v1', 'any'],
  ['/api/v1/me#x', 'management', 'v1', 'any'],
  ['/api/v1/surveys/1', 'management', 'v1', 'any'],
  ['/api/v1/responses?limit=1', 'management', 'v1', 'any'],
  ['/api/v1/integrations', 'management', 'v1', 'any'],
  ['/api/v1/license/recheck', 'management', 'v1', 'any'],
  ['/api/v1/organizations/o/workspaces', 'management', 'v1', 'any'],
  ['/api/auth/callback/credentials', 'pages', 'v1', null],
  ['/api/v1/%6danagement/me', 'management', 'v1', 'any'],
  ['/api/v2/healthy', 'v2', 'v2', 'key'],
  ['/api/v2/management/responses', 'v2', 'v2', 'key'],
  ['/api/v3/surveys', 'v3', 'v3', 'any'],
  ['/storage/ws1/public/x.png', 'pages', 'v1', null],
  ['/health', 'pages', 'v1', null],
  ['/api/v1/client/%zz', 'client', 'v1', null],
  ['', 'pages', 'v1', null],
];
for (const [path, name, errorShape, credentials] of cases) {
  t.test(`${path || 'an empty path'} belongs to ${name}`, async (t) => {
    t.match(surfaceOf(path), { name, errorShape, credentials });
  });
}

t.test('only client replies can be read by browsers of every origin', async (t) => {
  t.ok(surfaceOf('/api/v1/client/x').isCrossOrigin);
  t.ok(surfaceOf('/api/v2/client/x').isCrossOrigin);
  t.notOk(surfaceOf('/api/v1/management/me').isCrossOrigin);
});
