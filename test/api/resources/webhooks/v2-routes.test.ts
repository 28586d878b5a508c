import t from 'tap';
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

t.test('POST 201: v1 shows the same webhook', async (t) => {
  const { secret, ...shown } = (await send({ surveyIds: [survey.id], name: null })).json.data;
  t.match(secret, /^whsec_/);
  t.strictSame((await api.manage('GET', `/api/v1/webhooks/${shown.id}`)).json, { data: shown });
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
});

t.test('PUT 200: every field; the secret stays', async (t) => {
  const { secret, ...made } = (await send()).json.data;
  const one = `${path}/${made.id}`;
  await api.manage('PUT', one, { secret: 'mine' });
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
  await api.context.db.deleteFrom('surveys').where('id', '=', survey.id).execute();
  const renamed = await api.manage('PUT', one, { name: 'x', surveyIds: [survey.id] });
  t.equal(renamed.status, 200, 'a deleted survey does not prevent the change');
});
