/** v3 reads surveys. */
import t from 'tap';
import { addSurvey, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { logInOwner } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';
import { startRecordedApi } from '#test/support/query-plan.ts';
import { responseRow } from '#test/support/response-row.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const { db } = api.context;
const list = `/api/v3/surveys?workspaceId=${workspaceId}`;
const namesOf = (reply: { json: { data: { name: string }[] } }) => reply.json.data.map(({ name }) => name);

const surveys: { id: string }[] = [];
for (const [name, change] of [
  ['Alpha', { type: 'link' }],
  ['beta 100%', { type: 'app', status: 'draft' }],
  ['Gamma', { type: 'link', status: 'paused' }],
  ['alphabet', { type: 'app' }],
] as const) {
  api.advance(1000);
  surveys.push(await addSurvey(api, { name, ...change }));
}
const alpha = surveys[0]?.id ?? '';

t.test('200: the list, latest change first', async (t) => {
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: alpha,
    data: { q1: 'x' },
    finished: true,
  });
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: alpha,
    data: { q1: 'x' },
    finished: false,
  });
  const reply = await api.manage('GET', list);
  t.equal(reply.status, 200);
  t.strictSame(namesOf(reply), ['alphabet', 'Gamma', 'beta 100%', 'Alpha']);
  t.strictSame(reply.json.meta, { limit: 20, nextCursor: null, totalCount: 4, hasArchived: false });
  t.match(reply.json.data[3], {
    id: alpha,
    responseCount: 2,
    completedResponseCount: 1,
    creator: null,
    publishOn: null,
  });
  t.match(reply.headers['x-request-id'], /./);
  t.equal(reply.headers['cache-control'], 'private, no-store');
  const short = await api.manage('GET', `${list}&includeTotalCount=false`);
  t.match(short.json.meta, { totalCount: null, hasArchived: null });
});

t.test('200: the list reads no responses', async (t) => {
  const recorded = await startRecordedApi(t);
  const { id } = await addSurvey(recorded.api);
  await recorded.db
    .insertInto('responses')
    .values([responseRow('a', id), responseRow('b', id, 0)])
    .execute();
  recorded.queries.length = 0;
  t.match((await recorded.api.manage('GET', list)).json.data, [
    { responseCount: 2, completedResponseCount: 1 },
  ]);
  t.strictSame(
    recorded.queries.filter(({ sql }) => /"responses"/.test(sql) && !/"responseCounts"/.test(sql)),
    [],
  );
});

t.test('200: the list does not read the documents of the surveys', async (t) => {
  const documents = await db.selectFrom('surveys').select(['id', 'document']).execute();
  await db.updateTable('surveys').set({ document: 'not JSON' }).execute();
  await db
    .updateTable('surveys')
    .set({ publishOn: '2026-05-06T07:08:09.000Z' })
    .where('id', '=', alpha)
    .execute();
  const reply = await api.manage('GET', list);
  for (const { id, document } of documents) {
    await db.updateTable('surveys').set({ document, publishOn: null }).where('id', '=', id).execute();
  }
  t.equal(reply.status, 200);
  t.match(reply.json.data[3], { id: alpha, publishOn: '2026-05-06T07:08:09.000Z' });
});

t.test('200: pages by cursor, in every order, with each row exactly once', async (t) => {
  for (const sortBy of ['updatedAt', 'createdAt', 'name', 'relevance']) {
    const all = namesOf(await api.manage('GET', `${list}&sortBy=${sortBy}`));
    t.equal(all.length, 4);
    const paged: unknown[] = [];
    let cursor = '';
    for (let pages = 0; pages < 4; pages++) {
      const reply = await api.manage(
        'GET',
        `${list}&sortBy=${sortBy}&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      paged.push(...namesOf(reply));
      cursor = reply.json.meta.nextCursor ?? '';
    }
    t.strictSame(paged, all, sortBy);
    t.equal(cursor, '', 'the last page has no cursor');
  }
});

t.test('200: filters', async (t) => {
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['filter[name][contains]=ALPHA', ['alphabet', 'Alpha']],
    ['filter[name][contains]=100%25', ['beta 100%']],
    ['filter[name][contains]=_', []],
    ['filter[status][in]=paused', ['Gamma']],
    ['filter[status][in]=paused,draft', ['Gamma', 'beta 100%']],
    ['filter[status][in]=paused&filter[status][in]=draft', ['Gamma', 'beta 100%']],
    ['filter[status][in]=archived', []],
    ['filter[type][in]=link', ['Gamma', 'Alpha']],
    ['filter[type][in]=link&filter[status][in]=inProgress', ['Alpha']],
  ];
  for (const [query, expected] of cases) {
    t.strictSame(namesOf(await api.manage('GET', `${list}&${query}`)), expected, query);
  }
});

t.test('400: problem+json that names each parameter', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['sortBy=size', 'sortBy'],
    ['cursor=x', 'cursor'],
    [`cursor=${Buffer.from('["name","a","b"]').toString('base64url')}`, 'cursor'],
    [`cursor=${Buffer.from('[1,2,3]').toString('base64url')}`, 'cursor'],
    ['filter[status][in]=gone', 'filter[status][in]'],
    ['filter[type][in]=website', 'filter[type][in]'],
    [`filter[name][contains]=${'x'.repeat(513)}`, 'filter[name][contains]'],
  ];
  for (const [query, name] of cases) {
    const reply = await api.manage('GET', `${list}&${query}`);
    t.equal(reply.status, 400, query);
    t.match(reply.headers['content-type'], 'application/problem+json');
    t.match(reply.json.invalid_params, [{ name, reason: String }]);
  }
  const unknown = await api.manage('GET', `${list}&offset=3`);
  t.strictSame(unknown.json, {
    title: 'Bad Request',
    status: 400,
    detail: 'Invalid query parameters',
    requestId: unknown.headers['x-request-id'],
    code: 'bad_request',
    instance: '/api/v3/surveys',
    invalid_params: [{ name: 'offset', reason: 'is not a field of this request', code: 'unsupported_field' }],
  });
  for (const query of ['cursor=x', 'filter[type][in]=website']) {
    const reply = await api.manage('GET', `${list}&${query}`);
    t.equal(reply.json.detail, 'Invalid query parameters', query);
  }
  const missing = await api.manage('GET', '/api/v3/surveys');
  t.match(missing.json.invalid_params, [{ name: 'workspaceId', reason: 'Required' }]);
});

t.test('200: by name, every nextCursor leads on, also that of the longest name', async (t) => {
  await api.addWorkspace('ws3');
  const key = { 'x-api-key': await api.addKey({ ws3: 'write' }) };
  const make = (name: string) =>
    api.client('POST', '/api/v1/management/surveys', surveyBody({ workspaceId: 'ws3', name }), key);
  const names = ['\u0001', 'x', '写'].map((character) => character.repeat(1_000));
  for (const name of names) t.equal((await make(name)).status, 200);
  t.match(await make('x'.repeat(1_001)), { status: 400, json: { details: { name: /1000/ } } });
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const after: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const url = `/api/v3/surveys?workspaceId=ws3&sortBy=name&limit=1${after}`;
    const { json, status } = await api.client('GET', url, undefined, key);
    t.equal(status, 200);
    if (status !== 200) break;
    seen.push(...json.data.map(({ name }: { name: string }) => name));
    cursor = json.meta.nextCursor;
  }
  t.strictSame(seen, names);
});

t.test('403: the same for a workspace of others and for an unknown one', async (t) => {
  for (const path of [
    '/api/v3/surveys?workspaceId=ws2',
    '/api/v3/surveys?workspaceId=unknown',
    '/api/v3/action-classes?workspaceId=ws2',
    '/api/v3/contact-attribute-keys?workspaceId=unknown',
  ]) {
    const reply = await api.manage('GET', path);
    t.equal(reply.status, 403, path);
    t.match(reply.json, { code: 'forbidden', detail: 'You are not authorized to access this resource' });
  }
});

t.test('401: without credentials; 200: with a session', async (t) => {
  const reply = await api.client('GET', list);
  t.equal(reply.status, 401);
  t.match(reply.json, { title: 'Unauthorized', code: 'not_authenticated', detail: 'Not authenticated' });
  const browser = await logInOwner(api);
  t.equal((await browser.call('GET', list)).status, 200);
  t.equal(
    (await browser.call('GET', '/api/v3/surveys?workspaceId=ws2')).status,
    200,
    'the owner reads all workspaces of the organization',
  );
});

t.test('200: the id for older clients is a workspace id', async (t) => {
  const key = { 'x-api-key': await api.addKey({ ws2: 'manage' }) };
  const reply = await api.client('GET', '/api/v3/surveys?workspaceId=env2', undefined, key);
  t.match(reply, { status: 200, json: { data: [], meta: { totalCount: 0 } } });
});

t.test('200: action classes and attribute keys, in pages', async (t) => {
  const now = new Date(api.context.clock()).toISOString();
  await db.deleteFrom('actionClasses').execute();
  const row = { createdAt: now, updatedAt: now, workspaceId, description: null, noCodeConfig: null };
  for (const [id, type] of [
    ['a1', 'code'],
    ['a2', 'noCode'],
    ['a3', 'automatic'],
  ] as const) {
    await db
      .insertInto('actionClasses')
      .values({ ...row, id, name: id, type, key: id })
      .execute();
  }
  const actions = `/api/v3/action-classes?workspaceId=${workspaceId}`;
  const first = await api.manage('GET', `${actions}&limit=1`);
  t.strictSame(first.json.data, [{ id: 'a1', name: 'a1', description: null, type: 'code', key: 'a1' }]);
  const second = await api.manage('GET', `${actions}&limit=1&cursor=${first.json.meta.nextCursor}`);
  t.strictSame(namesOf(second), ['a2']);
  t.strictSame(second.json.meta, { limit: 1, nextCursor: null });
  const keys = `/api/v3/contact-attribute-keys?workspaceId=${workspaceId}`;
  const all = column((await api.manage('GET', keys)).json.data, 'key');
  t.equal(all.length, 5);
  const paged: unknown[] = [];
  let cursor = '';
  do {
    const { json } = await api.manage('GET', `${keys}&limit=2${cursor}`);
    paged.push(...column(json.data, 'key'));
    cursor = json.meta.nextCursor === null ? '' : `&cursor=${json.meta.nextCursor}`;
  } while (cursor !== '');
  t.strictSame(paged, all);
});

t.test('names the creator only if they belong to the organization of the survey', async (t) => {
  const member = await addPerson(api, 'Member', 'member');
  const foreign = await addPerson(api, 'Foreign', null);
  const creators: unknown[] = [];
  for (const { id } of [member, foreign]) {
    api.advance(1000);
    await addSurvey(api, { name: `By ${id}`, createdBy: id });
    creators.push((await api.manage('GET', `${list}&limit=1`)).json.data[0].creator);
  }
  t.strictSame(creators, [{ name: 'Member' }, null]);
});
