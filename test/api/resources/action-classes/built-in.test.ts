/** Action classes that no route creates. The rest is in test/conversations/action-classes.md. */
import t from 'tap';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';

t.test('400: built-in classes cannot be changed', async (t) => {
  const api = await startApi(t);
  const now = new Date(api.context.clock()).toISOString();
  const path = '/api/v1/management/action-classes/cbuiltin';
  await actionClasses.insert(api.context.db, {
    id: 'cbuiltin',
    workspaceId,
    createdAt: now,
    updatedAt: now,
    name: 'New Session',
    description: null,
    type: 'automatic',
    key: null,
    noCodeConfig: null,
  });
  t.equal((await api.manage('GET', path)).json.data.type, 'automatic');
  const deleted = await api.manage('DELETE', path);
  t.equal(deleted.status, 400);
  t.equal(deleted.json.message, 'Automatic action classes cannot be deleted');
  const change = { workspaceId, name: 'Sign up', type: 'code', key: 'signup' };
  const changed = await api.manage('PUT', path, change);
  t.equal(changed.status, 400);
  t.equal(changed.json.message, 'Automatic action classes cannot be updated');
});
