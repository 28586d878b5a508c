import t from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = '/api/v1/management/contact-attribute-keys';
const now = (): string => new Date(clock()).toISOString();
const body = (fields: Record<string, unknown> = {}) => ({
  workspaceId,
  key: 'plan',
  type: 'custom',
  ...fields,
});
const send = (fields: Record<string, unknown> = {}) => api.manage('POST', path, body(fields));
const defaults = async () =>
  (await api.manage('GET', path)).json.data.filter(({ type }: { type: string }) => type === 'default');

t.test('GET list 200: the keys of every new workspace', async (t) => {
  const { data } = (await api.manage('GET', path)).json;
  t.strictSame(
    Object.fromEntries(data.map(({ key, isUnique }: { key: string; isUnique: boolean }) => [key, isUnique])),
    { userId: true, email: true, firstName: false, lastName: false, language: false },
  );
  for (const key of data) {
    t.match(key, {
      type: 'default',
      dataType: 'string',
      environmentId: workspaceId,
      workspaceId,
      createdAt: now(),
    });
  }
});

t.test('POST 200: with every field, and the defaults of absent fields', async (t) => {
  const bare = await send({ key: 'favorite_color' });
  t.match(bare.json.data, { name: 'Favorite Color', description: '', dataType: 'string' });
  const said = await send({ key: 'age', name: 'Years', description: 'Since birth', dataType: 'number' });
  t.match(said.json.data, { name: 'Years', description: 'Since birth', dataType: 'number' });
});

t.test('POST 400: invalid keys', async (t) => {
  for (const key of [
    'Plan',
    '1st',
    'a-b',
    'a b',
    '',
    '_x',
    'ключ',
    'user_id',
    'first_name',
    'last_name',
    'a'.repeat(256),
  ]) {
    const reply = await send({ key });
    t.equal(reply.status, 400, key);
    t.match(reply.json.details, { key: /^The key / });
  }
  t.match((await send({ type: 'default' })).json.details, { type: 'must be one of custom' });
  t.match((await api.manage('POST', path, { workspaceId })).json.details, {
    key: 'Required',
    type: 'Required',
  });
  t.match((await send({ dataType: 'blob' })).json.details, { dataType: String });
  await send({ key: 'twice' });
  const again = await send({ key: 'twice' });
  t.equal(again.status, 400);
  t.equal(again.json.message, 'Attribute key already exists');
  t.equal((await send({ key: 'email' })).json.message, 'Attribute key already exists');
});

t.test('PUT 200: absent fields stay; of a default key only name and description change', async (t) => {
  const custom = (await send({ key: 'old_key', description: 'Text' })).json.data;
  t.match((await api.manage('PUT', `${path}/${custom.id}`, {})).json.data, {
    key: 'old_key',
    name: 'Old Key',
    description: 'Text',
  });
  const change = { name: 'Name', description: 'Text', key: 'new_key', dataType: 'date' };
  const [first] = await defaults();
  const fixed = await api.manage('PUT', `${path}/${first.id}`, change);
  t.match(fixed.json.data, {
    name: 'Name',
    description: 'Text',
    key: first.key,
    dataType: 'string',
    type: 'default',
  });
});

t.test('PUT 400: an invalid or taken key', async (t) => {
  const { id } = (await send({ key: 'mine' })).json.data;
  t.match((await api.manage('PUT', `${path}/${id}`, { key: 'No' })).json.details, { key: String });
  t.equal(
    (await api.manage('PUT', `${path}/${id}`, { key: 'email' })).json.message,
    'Attribute key already exists',
  );
  t.match((await api.manage('PUT', `${path}/${id}`, { name: '' })).json.details, { name: String });
});

t.test('DELETE 200: deletes the key and its values, but no default key', async (t) => {
  const key = (await send({ key: 'doomed' })).json.data;
  const contact = await findOrCreateContact(db, workspaceId, 'u1', now(), random);
  await db
    .insertInto('contactAttributes')
    .values({
      id: 'a1',
      createdAt: now(),
      updatedAt: now(),
      contactId: contact.id,
      attributeKeyId: key.id,
      value: 'x',
    })
    .execute();
  await api.manage('DELETE', `${path}/${key.id}`);
  t.strictSame(await db.selectFrom('contactAttributes').select('id').where('id', '=', 'a1').execute(), []);
  for (const { id } of await defaults()) {
    const reply = await api.manage('DELETE', `${path}/${id}`);
    t.equal(reply.status, 400);
    t.equal(reply.json.message, 'Default Contact Attribute Keys cannot be deleted');
  }
});
