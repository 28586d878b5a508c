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

t.test('POST 201', async (t) => {
  const reply = await send({
    key: 'seats',
    name: 'Seats',
    description: 'Bought',
    dataType: 'number',
    isUnique: true,
  });
  t.equal(reply.status, 201);
  const { id, createdAt } = reply.json.data;
  t.strictSame(reply.json, {
    data: {
      id,
      createdAt,
      updatedAt: createdAt,
      isUnique: false,
      key: 'seats',
      name: 'Seats',
      description: 'Bought',
      type: 'custom',
      dataType: 'number',
      workspaceId,
      environmentId: workspaceId,
    },
  });
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json, reply.json);
  const bare = await send({ key: 'favorite_color', name: null, description: null });
  t.match(bare.json.data, { name: 'Favorite Color', description: null, dataType: 'string' });
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
    [404, 'workspaceId', { key: 'ok', workspaceId: 'cnothing' }],
    [400, 'workspaceId', { key: 'ok', workspaceId: undefined }],
  ] as const) {
    const reply = await send(fields);
    t.equal(reply.status, status, JSON.stringify(fields));
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
  t.equal((await send({ key: 'ok', workspaceId: 'ws2' })).status, 403);
  t.equal(
    (await as(await api.addKey({ [workspaceId]: 'read' }), 'POST', path, { workspaceId, key: 'ok' })).status,
    403,
  );
  t.equal((await api.client('POST', path, { workspaceId, key: 'ok' })).status, 401);
});

t.test('POST 409: of two concurrent calls one creates the key', async (t) => {
  const replies = await Promise.all([send({ key: 'race' }), send({ key: 'race' }), send({ key: 'race' })]);
  t.strictSame(replies.map(({ status }) => status).sort(), [201, 409, 409]);
});

t.test('POST 403: a workspace at its maximum, and the reply names it', async (t) => {
  const fresh = await startApi(t);
  const made = [];
  for (let i = 0; i < 146; i += 1) {
    made.push(await fresh.manage('POST', path, { workspaceId, key: `k${i}` }));
  }
  t.equal(made[144]?.status, 201);
  t.equal(made[145]?.status, 403);
  t.match(made[145]?.json.error.details, [{ field: 'error', issue: /150 attribute keys/ }]);
});

t.test('GET list 200: pages, order, and only one workspace', async (t) => {
  const all = await as(both, 'GET', `${path}?limit=250&order=asc`);
  t.equal(all.json.meta.total, all.json.data.length);
  t.ok(keysOf(all).includes('email'));
  const second = await as(both, 'GET', `${path}?limit=1&skip=1&order=asc`);
  t.strictSame(keysOf(second), keysOf(all).slice(1, 2));
  t.strictSame(second.json.meta, { total: all.json.meta.total, limit: 1, offset: 1 });
  for (const query of ['workspaceId=ws2', 'environmentId=env2']) {
    t.strictSame(keysOf(await as(both, 'GET', `${path}?${query}`)), ['seats']);
  }
  t.equal((await api.manage('GET', `${path}?workspaceId=ws2`)).status, 403);
  t.equal((await api.manage('GET', `${path}?workspaceId=cnothing`)).status, 404);
  t.equal((await api.manage('GET', `${path}?skip=-1`)).status, 422);
});

t.test('PUT 200: changes name and description, but not key and type', async (t) => {
  const { data } = (await send({ key: 'size', dataType: 'number' })).json;
  api.advance(1);
  const change = {
    name: 'Size',
    description: 'Of the company',
    key: 'other',
    dataType: 'date',
    workspaceId: 'ws2',
  };
  const reply = await api.manage('PUT', `${path}/${data.id}`, change);
  t.equal(reply.status, 200);
  const { updatedAt } = reply.json.data;
  t.ok(updatedAt > data.updatedAt);
  t.strictSame(reply.json.data, { ...data, name: 'Size', description: 'Of the company', updatedAt });
  t.match((await api.manage('PUT', `${path}/${data.id}`, { description: null })).json.data, {
    name: 'Size',
    description: null,
  });
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

t.test('DELETE 200, then 404; 401, 422', async (t) => {
  const made = (await send({ key: 'short_lived' })).json;
  const one = `${path}/${made.data.id}`;
  t.equal((await as(await api.addKey({ [workspaceId]: 'write' }), 'DELETE', one)).status, 401);
  t.equal((await as(await api.addKey({ ws2: 'manage' }), 'GET', one)).status, 401);
  t.strictSame((await api.manage('DELETE', one)).json, made);
  for (const method of ['GET', 'PUT', 'DELETE'] as const) {
    const reply = await api.manage(method, one, method === 'PUT' ? {} : undefined);
    t.equal(reply.status, 404);
    t.strictSame(reply.json.error.details, [{ field: 'contactAttributeKey', issue: 'not found' }]);
    t.equal((await api.manage(method, `${path}/No!`, method === 'PUT' ? {} : undefined)).status, 422);
  }
});
