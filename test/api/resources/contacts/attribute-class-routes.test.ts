import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const path = '/api/v1/management/attribute-classes';
const send = (fields: Record<string, unknown>) =>
  api.manage('POST', path, { environmentId: workspaceId, type: 'code', ...fields });
const list = async () => (await api.manage('GET', path)).json.data;

t.test('GET list 200: the default keys, three of them automatic', async (t) => {
  const data = await list();
  t.strictSame(
    Object.fromEntries(data.map(({ name, type }: { name: string; type: string }) => [name, type])),
    { userId: 'automatic', email: 'automatic', language: 'automatic', firstName: 'code', lastName: 'code' },
  );
});

t.test('POST 200: any name that older clients choose; it is an attribute key too', async (t) => {
  const { id } = (await send({ name: 'Favorite Color' })).json.data;
  const key = await api.manage('GET', `/api/v1/management/contact-attribute-keys/${id}`);
  t.match(key.json.data, { key: 'Favorite Color', name: 'Favorite Color', type: 'custom' });
  t.equal((await send({ name: '__' })).status, 200, 'a name without words is its own label');
});

t.test('POST 400', async (t) => {
  t.match((await api.manage('POST', path, { environmentId: workspaceId })).json.details, {
    name: 'Required',
    type: 'Required',
  });
  t.match((await send({ name: 'x', type: 'automatic' })).json.details, { type: 'must be one of code' });
  t.match((await send({ name: '' })).json.details, { name: String });
  t.match((await send({ name: 'user_id' })).json.details, { name: /reserved/ });
  await send({ name: 'twice' });
  const again = await send({ name: 'twice' });
  t.equal(again.status, 400);
  t.equal(again.json.message, 'Attribute class already exists');
});

t.test('PUT 200: absent fields stay; 400: a taken name', async (t) => {
  const made = (await send({ name: 'before', description: 'Old' })).json.data;
  await api.manage('PUT', `${path}/${made.id}`, { archived: true });
  t.match((await api.manage('PUT', `${path}/${made.id}`, { description: null })).json.data, {
    name: 'before',
    description: null,
    archived: true,
  });
  t.equal(
    (await api.manage('PUT', `${path}/${made.id}`, { name: 'email' })).json.message,
    'Attribute class already exists',
  );
});

t.test('PUT and DELETE 400: built-in classes can be archived, not renamed or deleted', async (t) => {
  for (const { id, name } of (await list()).filter(({ name }: { name: string }) =>
    ['email', 'firstName'].includes(name),
  )) {
    t.equal((await api.manage('PUT', `${path}/${id}`, { name, archived: true })).json.data.archived, true);
    const renamed = await api.manage('PUT', `${path}/${id}`, { name: 'mine' });
    t.equal(renamed.json.message, 'Automatic Attribute Classes cannot be renamed');
    const deleted = await api.manage('DELETE', `${path}/${id}`);
    t.equal(deleted.status, 400);
    t.equal(deleted.json.message, 'Automatic Attribute Classes cannot be deleted');
  }
});
