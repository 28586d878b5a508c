import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const both = await api.addKey({ [workspaceId]: 'manage', ws2: 'manage' });
const path = '/api/v2/management/contact-attribute-keys';
const as = (key: string, method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown) =>
  api.client(method, url, body, { 'x-api-key': key });
const send = (fields: Record<string, unknown>) => api.manage('POST', path, { workspaceId, ...fields });
const keysOf = (reply: { json: { data: { key: string }[] } }) => reply.json.data.map(({ key }) => key);

t.test('POST 201: the defaults, and an empty description is null, also after a change', async (t) => {
  await send({ key: 'seats' });
  const bare = await send({ key: 'favorite_color', name: null, description: null });
  t.match(bare.json.data, { name: 'Favorite Color', description: null, dataType: 'string' });
  const change = await api.manage('PUT', `${path}/${bare.json.data.id}`, { description: 'x' });
  t.match(change.json.data, { name: 'Favorite Color', description: 'x' }, 'absent fields stay');
  const emptied = await api.manage('PUT', `${path}/${bare.json.data.id}`, { description: null });
  t.match(emptied.json.data, { name: 'Favorite Color', description: null });
  const old = await as(both, 'POST', path, { environmentId: 'env2', key: 'seats' });
  t.match(
    old.json,
    { data: { workspaceId: 'ws2', environmentId: 'env2' } },
    'another workspace may have the same key',
  );
});

t.test('POST 4xx', async (t) => {
  for (const [status, field, fields] of [
    [422, 'key', {}],
    [422, 'key', { key: 'Has Space' }],
    [422, 'key', { key: 'user_id' }],
    [422, 'key', { key: 'x'.repeat(256) }],
    [422, 'dataType', { key: 'ok', dataType: 'money' }],
    [409, 'key', { key: 'seats' }],
  ] as const) {
    const reply = await send(fields);
    t.equal(reply.status, status, JSON.stringify(fields));
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
});

t.test('POST 409: of two concurrent calls one creates the key', async (t) => {
  const replies = await Promise.all([send({ key: 'race' }), send({ key: 'race' }), send({ key: 'race' })]);
  t.strictSame(replies.map(({ status }) => status).sort(), [201, 409, 409]);
});

t.test('GET list 200: of one workspace', async (t) => {
  const all = await as(both, 'GET', `${path}?limit=250&order=asc`);
  t.equal(all.json.meta.total, all.json.data.length);
  t.ok(keysOf(all).includes('email'));
  for (const query of ['workspaceId=ws2', 'environmentId=env2']) {
    t.strictSame(keysOf(await as(both, 'GET', `${path}?${query}`)), ['seats']);
  }
  t.equal((await api.manage('GET', `${path}?workspaceId=ws2`)).status, 403);
  t.equal((await api.manage('GET', `${path}?workspaceId=cnothing`)).status, 404);
});

t.test('PUT and DELETE 400: default and unique keys cannot be changed', async (t) => {
  const { data } = (await api.manage('GET', `${path}?limit=250`)).json;
  const idOf = (key: string) => data.find((one: { key: string }) => one.key === key).id;
  for (const key of ['email', 'firstName']) {
    for (const method of ['PUT', 'DELETE'] as const) {
      const reply = await api.manage(
        method,
        `${path}/${idOf(key)}`,
        method === 'PUT' ? { name: 'x' } : undefined,
      );
      t.equal(reply.status, 400, `${method} ${key}`);
      t.match(reply.json.error.details, [{ field: 'contactAttributeKey', issue: String }]);
    }
  }
});
