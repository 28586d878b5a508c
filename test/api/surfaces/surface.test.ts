import t from 'tap';
import { familyOf } from '#api/surfaces/surface.ts';

const cases: readonly (readonly [path: string, name: string, envelope: string, isAuthenticated: boolean])[] =
  [
    ['/api/v1/client/ws1/environment', 'client-v1', 'A', false],
    ['/api/v2/client/ws1/responses?x=1', 'client-v2', 'A', false],
    ['/api/v1/management/surveys', 'management-v1', 'A', true],
    ['/api/v1/management', 'management-v1', 'A', true],
    ['/api/v1/webhooks', 'management-v1', 'A', true],
    ['/api/v1/webhooks/x', 'management-v1', 'A', true],
    ['/api/v1/webhooksx', 'other', 'A', false],
    ['/api/v1/me', 'management-v1', 'A', true],
    ['/api/v1/me#x', 'management-v1', 'A', true],
    ['/api/v1/surveys/1', 'management-v1', 'A', true],
    ['/api/v1/responses?limit=1', 'management-v1', 'A', true],
    ['/api/v1/api-keys/x', 'management-v1', 'A', true],
    ['/api/v1/integrations', 'management-v1', 'A', true],
    ['/api/v1/license/recheck', 'management-v1', 'A', true],
    ['/api/v1/profile/email', 'management-v1', 'A', true],
    ['/api/auth/callback/credentials', 'other', 'A', false],
    ['/api/v1/%6danagement/me', 'management-v1', 'A', true],
    ['/api/v2/health', 'v2', 'B', false],
    ['/api/v2/healthy', 'v2', 'B', true],
    ['/api/v2/management/responses', 'v2', 'B', true],
    ['/api/v3/surveys', 'v3', 'C', true],
    ['/storage/ws1/public/x.png', 'other', 'A', false],
    ['/health', 'other', 'A', false],
    ['/api/v1/client/%zz', 'client-v1', 'A', false],
    ['', 'other', 'A', false],
  ];
for (const [path, name, envelope, isAuthenticated] of cases) {
  t.test(`${path || 'nothing'} is of ${name}`, async (t) => {
    t.match(familyOf(path), { name, envelope, isAuthenticated });
  });
}

t.test('browsers of any origin may read client replies, and no others', async (t) => {
  t.ok(familyOf('/api/v1/client/x').isCrossOrigin);
  t.ok(familyOf('/api/v2/client/x').isCrossOrigin);
  t.notOk(familyOf('/api/v1/management/me').isCrossOrigin);
});
