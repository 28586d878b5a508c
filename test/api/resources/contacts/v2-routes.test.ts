/** POST /api/v2/management/contacts */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const path = '/api/v2/management/contacts';
const send = (attributes: unknown, more: Record<string, unknown> = {}) =>
  api.manage('POST', path, { workspaceId, attributes, ...more });
const contactCount = async (): Promise<number> =>
  (await api.manage('GET', '/api/v1/management/contacts')).json.data.length;

t.test('POST 201', async (t) => {
  const attributes = { email: 'ada@example.com', userId: 'ada', firstName: 'Ada' };
  const reply = await send(attributes);
  t.equal(reply.status, 201);
  const { id, createdAt } = reply.json.data;
  t.strictSame(reply.json, {
    data: { id, createdAt, workspaceId, environmentId: workspaceId, attributes },
  });
  t.match((await api.manage('GET', `/api/v1/management/people/${id}`)).json.data, {
    userId: 'ada',
    attributes,
  });
  const plain = await send({ email: 'b@example.com' });
  t.equal(plain.status, 201, 'an address is enough');
  t.match((await api.manage('GET', `/api/v1/management/contacts/${plain.json.data.id}`)).json.data, {
    userId: null,
  });
});

t.test('POST: clients then identify this contact', async (t) => {
  const made = await send({ email: 'c@example.com', userId: 'carl' });
  const user = await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'carl' });
  t.equal(user.json.data.state.data.contactId, made.json.data.id);
});

t.test('POST 400: unknown attribute keys', async (t) => {
  const before = await contactCount();
  const reply = await send({ email: 'd@example.com', shoe_size: '43', hat: 'red' });
  t.equal(reply.status, 400);
  t.match(reply.json.error.details, [
    { field: 'attributes', issue: /attribute keys not found.*shoe_size.*hat/ },
  ]);
  t.equal(await contactCount(), before);
});

t.test('POST 409: the address or user id of another contact', async (t) => {
  const email = await send({ email: 'ada@example.com' });
  t.equal(email.status, 409);
  t.match(email.json.error.details, [{ field: 'email', issue: /already exists/ }]);
  const user = await send({ email: 'e@example.com', userId: 'ada' });
  t.equal(user.status, 409);
  t.match(user.json.error.details, [{ field: 'userId', issue: /already exists/ }]);
});

t.test('POST 422: invalid values', async (t) => {
  await api.manage('POST', '/api/v2/management/contact-attribute-keys', {
    workspaceId,
    key: 'seats',
    dataType: 'number',
  });
  for (const [field, attributes] of [
    ['attributes', undefined],
    ['attributes.email', {}],
    ['attributes.email', { email: 'nobody' }],
    ['attributes.email', { email: 'a b@example.com' }],
    ['attributes.email', { email: '' }],
    ['attributes.userId', { email: 'f@example.com', userId: '' }],
    ['attributes.userId', { email: 'f@example.com', userId: 'x'.repeat(256) }],
    ['attributes.firstName', { email: 'f@example.com', firstName: 'x'.repeat(2_049) }],
    ['attributes.firstName', { email: 'f@example.com', firstName: null }],
    ['attributes.seats', { email: 'f@example.com', seats: 'many' }],
  ] as const) {
    const reply = await send(attributes);
    t.equal(reply.status, 422, JSON.stringify(attributes)?.slice(0, 60));
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
  t.match((await send({ email: 'f@example.com', seats: 4 })).json.data.attributes, { seats: '4' });
});

t.test('POST 400, 401, 403, 404: the scope', async (t) => {
  const attributes = { email: 'g@example.com' };
  t.equal((await api.manage('POST', path, { attributes })).status, 400);
  t.equal((await api.client('POST', path, { workspaceId, attributes })).status, 401);
  t.equal((await send(attributes, { workspaceId: 'ws2' })).status, 403);
  const reader = await api.addKey({ [workspaceId]: 'read' });
  t.equal((await api.client('POST', path, { workspaceId, attributes }, { 'x-api-key': reader })).status, 403);
  t.equal((await send(attributes, { workspaceId: 'cnothing' })).status, 404);
});
