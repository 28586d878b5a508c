import t from 'tap';
import { type ApiKeyPrincipal, may, rightOf } from '#api/auth/principal.ts';

const principal: ApiKeyPrincipal = {
  kind: 'apiKey',
  apiKeyId: 'k',
  organizationId: 'o',
  permissions: new Map([
    ['r', 'read'],
    ['w', 'write'],
    ['m', 'manage'],
  ]),
};

t.test('manage includes write, write includes read, and nothing includes another workspace', async (t) => {
  const rows: readonly (readonly [string, boolean, boolean, boolean])[] = [
    ['r', true, false, false],
    ['w', true, true, false],
    ['m', true, true, true],
    ['x', false, false, false],
  ];
  for (const [id, read, write, manage] of rows) {
    t.strictSame(
      [may(principal, id, 'read'), may(principal, id, 'write'), may(principal, id, 'manage')],
      [read, write, manage],
      id,
    );
  }
});

t.test('reading requires read, writing requires write, and deleting requires manage', async (t) => {
  const rights = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].map(rightOf);
  t.strictSame(rights, ['read', 'read', 'write', 'write', 'write', 'manage']);
});
