import t from 'tap';
import { insertWebhook } from '#api/resources/webhooks/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const both = await api.addKey({ [workspaceId]: 'manage', ws2: 'manage' });
const survey = await addSurvey(api);
const path = '/api/v2/management/webhooks';
const fields = {
  workspaceId,
  name: 'To us',
  url: 'https://hooks.example.com/in',
  source: 'user',
  triggers: ['responseFinished'],
  surveyIds: [] as string[],
};
const send = (more: Record<string, unknown> = {}) => api.manage('POST', path, { ...fields, ...more });
const as = (key: string, method: 'GET' | 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown) =>
  api.client(method, url, body, { 'x-api-key': key });

const foreign = await as(both, 'POST', '/api/v1/management/surveys', {
  workspaceId: 'ws2',
  name: 'Of ws2',
  questions: survey.questions,
});
const foreignId = foreign.json.data.id;

t.test('POST 201: shows the secret once', async (t) => {
  const reply = await send({ surveyIds: [survey.id], name: null });
  t.equal(reply.status, 201);
  const { id, secret, createdAt } = reply.json.data;
  t.strictSame(reply.json, {
    data: {
      id,
      name: null,
      createdAt,
      updatedAt: createdAt,
      url: fields.url,
      source: 'user',
      environmentId: workspaceId,
      workspaceId,
      triggers: ['responseFinished'],
      surveyIds: [survey.id],
      secret,
    },
  });
  t.match(secret, /^whsec_/);
  const { secret: _, ...shown } = reply.json.data;
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json, { data: shown });
  t.strictSame((await api.manage('GET', path)).json, {
    data: [shown],
    meta: { total: 1, limit: 50, offset: 0 },
  });
  t.strictSame(
    (await api.manage('GET', `/api/v1/webhooks/${id}`)).json,
    { data: shown },
    'v1 shows the same webhook',
  );
});

t.test('POST 201: ignores unknown fields, and fields that a caller cannot set', async (t) => {
  const reply = await send({ secret: 'mine', id: 'mine', createdAt: 'mine', unknown: 1 });
  t.equal(reply.status, 201);
  t.notMatch(reply.text, /mine|unknown/);
});

t.test('POST: the scope', async (t) => {
  const { workspaceId: _, ...unscoped } = fields;
  const one = await api.manage('POST', path, unscoped);
  t.equal(one.status, 201, 'a key for one workspace need not name it');
  const several = await as(both, 'POST', path, unscoped);
  t.equal(several.status, 400);
  t.strictSame(several.json.error.details, [{ field: 'workspaceId', issue: 'workspaceId must be provided' }]);
  const unknown = await send({ workspaceId: 'cnothing' });
  t.equal(unknown.status, 404);
  t.strictSame(unknown.json.error.details, [{ field: 'workspaceId', issue: 'workspace not found' }]);
  const other = await send({ workspaceId: 'ws2' });
  t.equal(other.status, 403);
  t.strictSame(other.json, { error: { code: 403, message: 'Forbidden' } });
  const reader = await api.addKey({ [workspaceId]: 'read' });
  t.equal((await as(reader, 'POST', path, fields)).status, 403);
  const old = await as(both, 'POST', path, { ...unscoped, environmentId: 'env2' });
  t.match(old.json, { data: { workspaceId: 'ws2', environmentId: 'env2' } });
});

t.test('POST 422, 400, 404', async (t) => {
  const missing = await api.manage('POST', path, { workspaceId });
  t.equal(missing.status, 422);
  t.strictSame(missing.json.error.details.map(({ field }: { field: string }) => field).sort(), [
    'name',
    'source',
    'surveyIds',
    'triggers',
    'url',
  ]);
  for (const [status, field, more] of [
    [422, 'triggers', { triggers: [] }],
    [422, 'source', { source: 'x' }],
    [422, 'surveyIds.0', { surveyIds: ['No Id'] }],
    [400, 'url', { url: 'nowhere' }],
    [400, 'url', { url: 'ftp://x.example' }],
    [400, 'url', { url: 'http://127.0.0.1/' }],
    [404, 'survey', { surveyIds: ['cnothing'] }],
    [404, 'survey', { surveyIds: [foreignId] }],
  ] as const) {
    const reply = await send(more);
    t.equal(reply.status, status, JSON.stringify(more));
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
  const mixed = await as(both, 'POST', path, { ...fields, surveyIds: [survey.id, foreignId] });
  t.equal(mixed.status, 400, 'the surveys are in two workspaces');
  t.match(mixed.json.error.details, [{ field: 'surveyIds', issue: String }]);
});

t.test('POST 403: a workspace has at most 100, and the reply says so', async (t) => {
  const fresh = await startApi(t);
  const now = new Date(0).toISOString();
  for (let i = 0; i < 100; i += 1) {
    await insertWebhook(fresh.context.db, {
      id: `c${i}`,
      workspaceId,
      name: null,
      url: fields.url,
      source: 'user',
      triggers: [],
      surveyIds: [],
      secret: null,
      createdAt: now,
      updatedAt: now,
    });
  }
  const reply = await fresh.manage('POST', path, fields);
  t.equal(reply.status, 403);
  t.match(reply.json.error.details, [{ field: 'error', issue: /100 webhooks/ }]);
});

t.test('GET list 200: pages, order, and webhooks by survey', async (t) => {
  const fresh = await startApi(t);
  const [a, b] = [await addSurvey(fresh), await addSurvey(fresh)];
  const ids: string[] = [];
  for (const surveyIds of [[a.id], [b.id], [a.id, b.id], []]) {
    fresh.advance(1000);
    ids.push((await fresh.manage('POST', path, { ...fields, surveyIds })).json.data.id);
  }
  const listed = async (query: string) => {
    const { json } = await fresh.manage('GET', `${path}?${query}`);
    return [json.data.map(({ id }: { id: string }) => ids.indexOf(id)), json.meta.total];
  };
  t.strictSame(await listed(''), [[3, 2, 1, 0], 4]);
  t.strictSame(await listed('order=asc&limit=2&skip=1'), [[1, 2], 4]);
  t.strictSame(await listed(`surveyIds=${a.id}`), [[2, 0], 2]);
  t.strictSame(await listed(`surveyIds=${a.id},${b.id}`), [[2, 1, 0], 3]);
  t.strictSame(await listed(`surveyIds=${a.id}&surveyIds=${b.id}`), [[2, 1, 0], 3]);
  t.equal((await fresh.manage('GET', `${path}?surveyIds=No!`)).status, 422);
  t.equal((await fresh.manage('GET', `${path}?limit=251`)).status, 422);
});

t.test('PUT 200: changes only the given fields', async (t) => {
  const { secret, ...made } = (await send()).json.data;
  const one = `${path}/${made.id}`;
  api.advance(1000);
  const reply = await api.manage('PUT', one, { name: 'Other', source: 'zapier', workspaceId: 'ws2' });
  t.equal(reply.status, 200);
  const { updatedAt } = reply.json.data;
  t.ok(updatedAt > made.updatedAt);
  t.strictSame(reply.json, { data: { ...made, name: 'Other', source: 'zapier', updatedAt } });
  const whole = {
    name: null,
    url: 'https://b.example/',
    source: 'n8n',
    triggers: ['responseCreated'],
    surveyIds: [survey.id],
  };
  t.match((await api.manage('PUT', one, whole)).json.data, whole);
  t.match((await api.manage('GET', one)).json.data, { ...whole, workspaceId });
  const row = await api.context.db
    .selectFrom('webhooks')
    .select('secret')
    .where('id', '=', made.id)
    .executeTakeFirst();
  t.equal(row?.secret, secret, 'the secret stays');
});

t.test('PUT: the same checks as for a new webhook', async (t) => {
  const { id } = (await send({ surveyIds: [survey.id] })).json.data;
  const one = `${path}/${id}`;
  for (const [status, body] of [
    [422, { triggers: [] }],
    [422, { source: 'x' }],
    [422, { url: 1 }],
    [400, { url: 'http://10.0.0.1/' }],
    [404, { surveyIds: ['cnothing'] }],
  ] as const) {
    t.equal((await api.manage('PUT', one, body)).status, status, JSON.stringify(body));
  }
  t.equal((await as(both, 'PUT', one, { surveyIds: [foreignId] })).status, 400, 'in another workspace');
  t.equal((await api.manage('PUT', `${path}/cnothing`, {})).status, 404);
  t.equal((await as(await api.addKey({ [workspaceId]: 'read' }), 'PUT', one, {})).status, 401);
  await api.context.db.deleteFrom('surveys').where('id', '=', survey.id).execute();
  const renamed = await api.manage('PUT', one, { name: 'x', surveyIds: [survey.id] });
  t.equal(renamed.status, 200, 'a deleted survey does not prevent the change');
});

t.test('GET and DELETE: 404, 401, 422', async (t) => {
  const made = await send();
  const { secret: _, ...shown } = made.json.data;
  const one = `${path}/${shown.id}`;
  t.equal((await as(await api.addKey({ [workspaceId]: 'write' }), 'DELETE', one)).status, 401);
  t.equal((await as(await api.addKey({ ws2: 'manage' }), 'GET', one)).status, 401);
  t.strictSame((await api.manage('DELETE', one)).json, { data: shown });
  for (const method of ['GET', 'DELETE'] as const) {
    const reply = await api.manage(method, one);
    t.equal(reply.status, 404);
    t.strictSame(reply.json.error.details, [{ field: 'webhook', issue: 'not found' }]);
    t.equal((await api.manage(method, `${path}/No!`)).status, 422);
  }
});
