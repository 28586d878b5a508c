import t from 'tap';
import { startApi } from '#test/support/api-app.ts';

const api = await startApi();
t.teardown(() => api.close());

t.test('404: SDK scripts are elsewhere, and the reply says where', async (t) => {
  for (const [path, name] of [
    ['/js/formbricks.umd.cjs', '@formbricks/js'],
    ['/js/surveys.umd.cjs', '@formbricks/surveys'],
    ['/api/packages/js', '@formbricks/js'],
    ['/api/packages/app', '@formbricks/js'],
    ['/api/packages/website', '@formbricks/js'],
    ['/api/packages/surveys', '@formbricks/surveys'],
  ] as const) {
    const reply = await api.client('GET', path);
    t.equal(reply.status, 404, path);
    t.match(reply.json, { code: 'not_found', details: { resource_id: path, resource_type: 'file' } });
    t.match(reply.json.message, name);
    t.equal(reply.headers['access-control-allow-origin'], '*');
  }
});
