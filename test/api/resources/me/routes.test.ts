import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');

for (const path of ['/api/v1/me', '/api/v1/management/me']) {
  t.test(`200: ${path} answers the account, not wrapped in data`, async (t) => {
    const reply = await api.manage('GET', path);
    t.equal(reply.status, 200);
    const now = new Date(api.context.clock()).toISOString();
    t.strictSame(reply.json, {
      id: workspaceId,
      type: 'production',
      createdAt: now,
      updatedAt: now,
      appSetupCompleted: false,
      websiteSetupCompleted: false,
      workspace: { id: workspaceId, name: 'My workspace' },
      project: { id: workspaceId, name: 'My workspace' },
    });
  });

  t.test(`200: ${path} shows the legacy environment id`, async (t) => {
    const key = await api.addKey({ ws2: 'read' });
    const reply = await api.client('GET', path, undefined, { 'x-api-key': key });
    t.match(reply.json, { id: 'env2', workspace: { id: 'ws2' } });
  });

  t.test(`400: ${path} without exactly one workspace points to v2`, async (t) => {
    for (const permissions of [{}, { [workspaceId]: 'read', ws2: 'read' }] as const) {
      const key = await api.addKey(permissions);
      const reply = await api.client('GET', path, undefined, { 'x-api-key': key });
      t.equal(reply.status, 400);
      t.match(reply.json, { code: 'bad_request', message: /GET \/api\/v2\/me/, details: {} });
    }
  });
}
