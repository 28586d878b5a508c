import { sql } from 'kysely';
import t from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';

const api = await startApi(t);
const path = '/api/v1/management/responses';
const { db, random } = api.context;
await api.addWorkspace('ws2');
const survey = await addSurvey(api);
/** This response has no answers yet. */
const empty = { finished: false, data: {} };

const create = async (fields: Record<string, unknown> = {}) =>
  (await api.manage('POST', path, { ...empty, surveyId: survey.id, ...fields })).json.data;

t.test('POST 200: the survey gives the workspace; dates and meta are stored as sent', async (t) => {
  const data = await create({
    finished: true,
    data: { q1: ['Some', 'strings'] },
    language: 'default',
    createdAt: '2024-05-06T07:08:09Z',
    ttc: { q1: 5 },
    meta: { url: 'https://x.example', country: 'CH', userAgent: { browser: 'Netscape', os: null } },
  });
  t.match(data, {
    createdAt: '2024-05-06T07:08:09.000Z',
    updatedAt: '2024-05-06T07:08:09.000Z',
    finished: true,
    data: { q1: ['Some', 'strings'] },
    language: 'default',
    ttc: { q1: 5, _total: 5 },
    notes: [],
    tags: [],
  });
  t.strictSame(data.meta, { url: 'https://x.example', country: 'CH', userAgent: { browser: 'Netscape' } });
  const both = await create({ createdAt: '2024-01-01', updatedAt: '2024-01-02' });
  t.equal(both.updatedAt, '2024-01-02T00:00:00.000Z');
});

t.test('POST 200: with any status of the survey', async (t) => {
  const draft = await addSurvey(api, { status: 'draft', pin: '1234' });
  const reply = await api.manage('POST', path, { surveyId: draft.id, data: { q1: 'x' }, finished: true });
  t.equal(reply.status, 200);
});

t.test('POST 200: links a known user', async (t) => {
  const contact = await findOrCreateContact(db, workspaceId, 'u1', '2026-01-01T00:00:00.000Z', random);
  const linked = await create({ userId: 'u1' });
  t.equal(linked.person.id, contact.id);
  t.equal((await create({ userId: 'u2' })).person, null);
  await db.deleteFrom('contacts').where('id', '=', contact.id).execute();
  const { data } = (await api.manage('GET', `${path}/${linked.id}`)).json;
  t.match(data, { person: null, personAttributes: { userId: 'u1' } }, 'the attributes of the response stay');
});

t.test('POST: errors', async (t) => {
  const send = (fields: object) => api.manage('POST', path, { ...empty, ...fields });
  t.match((await send({})).json.details, { surveyId: 'Required' });
  t.equal((await send({ surveyId: 'cnothing' })).status, 404);
  const scope = await send({ surveyId: survey.id, environmentId: 'ws2' });
  t.equal(scope.status, 401, 'no access to the named workspace');
  const unknown = await send({ surveyId: survey.id, workspaceId: 'nope' });
  t.equal(unknown.json.message, 'Workspace not found');
  t.match((await send({ surveyId: survey.id, createdAt: 'yesterday' })).json.details, { createdAt: String });
  t.match((await send({ surveyId: survey.id, data: { q1: false } })).json.details, { 'data.q1': String });
  const wide = await api.addKey({ [workspaceId]: 'write', ws2: 'write' });
  const other = await api.client(
    'POST',
    path,
    { ...empty, surveyId: survey.id, workspaceId: 'ws2' },
    { 'x-api-key': wide },
  );
  t.equal(other.json.message, 'Survey is part of another workspace');
  await create({ singleUseId: 's1' });
  t.equal((await send({ surveyId: survey.id, singleUseId: 's1' })).status, 409);
});

t.test('PUT 200: takes language and times out of the answers', async (t) => {
  const { id } = await create({ data: { q1: 'a' }, ttc: { q1: 10 } });
  const reply = await api.manage('PUT', `${path}/${id}`, {
    data: { q1: 'b', language: 'de', ttc: { q2: 5 } },
    finished: true,
  });
  t.equal(reply.status, 200);
  const { data } = reply.json;
  t.strictSame(data.data, { q1: 'b' });
  t.equal(data.language, 'de');
  t.strictSame(data.ttc, { q1: 10, q2: 5, _total: 15 });
  t.notOk(Object.hasOwn(data, 'notes'), 'replies to updates have no notes');
});

t.test('PUT 200: a question named language keeps its answer', async (t) => {
  const asking = await addSurvey(api, {
    questions: [{ id: 'language', type: 'openText', headline: 'Which?' }],
  });
  const made = await api.manage('POST', path, { ...empty, surveyId: asking.id, data: { language: 'Latin' } });
  t.strictSame(made.json.data.data, { language: 'Latin' });
  t.equal(made.json.data.language, null);
});

t.test('PUT 200: finished responses can be changed, and null removes an answer', async (t) => {
  const { id } = await create({ finished: true, data: { q1: 'a' } });
  const reply = await api.manage('PUT', `${path}/${id}`, {
    data: null,
    ttc: null,
    variables: null,
    endingId: 'e',
  });
  t.match(reply.json.data, { data: { q1: 'a' }, endingId: 'e', finished: true });
});

t.test('GET one and DELETE: the reply, the display, and then 404', async (t) => {
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id });
  const displayId = display.json.data.id;
  const made = await create({ displayId, data: { q1: '/storage/ws1/private/x.pdf' } });
  t.equal(made.data.q1, `${publicUrl}/storage/ws1/private/x.pdf`, 'files have absolute addresses');
  const one = `${path}/${made.id}`;
  t.strictSame((await api.manage('GET', one)).json.data, made);
  const { notes: _, ...withoutNotes } = made;
  t.strictSame((await api.manage('DELETE', one)).json.data, withoutNotes);
  const gone = await api.manage('GET', one);
  t.equal(gone.status, 404);
  t.strictSame(gone.json.details, { resource_id: made.id, resource_type: 'Response' });
  const displayGone = await api.client('GET', `/api/v1/client/${workspaceId}/displays/${displayId}/response`);
  t.equal(displayGone.status, 404);
});

t.test('GET list: order, pages and limits', async (t) => {
  const fresh = await startApi(t);
  await fresh.addWorkspace('ws2');
  const own = await addSurvey(fresh);
  const both = await fresh.addKey({ [workspaceId]: 'manage', ws2: 'manage' });
  const ask = async (url: string, body?: unknown) =>
    (await fresh.client(body === undefined ? 'GET' : 'POST', url, body, { 'x-api-key': both })).json.data;
  const foreign = await ask('/api/v1/management/surveys', {
    workspaceId: 'ws2',
    name: 'x',
    questions: [{ id: 'q', type: 'nps', headline: 'x' }],
  });
  const ids: string[] = [];
  for (let i = 0; i < 30; i += 1) {
    const made = await ask(path, { ...empty, surveyId: i % 3 === 0 ? foreign.id : own.id });
    ids.unshift(made.id);
    fresh.advance(1);
  }
  const list = async (query: string): Promise<string[]> =>
    (await ask(`${path}${query}`)).map(({ id }: { id: string }) => id);
  t.strictSame(await list(''), ids, 'responses of both workspaces, newest first');
  t.strictSame(await list('?limit=4&skip=5'), ids.slice(5, 9), 'a page across both workspaces');
  const ownIds = ids.filter((_, i) => (29 - i) % 3 !== 0);
  t.strictSame(await list(`?surveyId=${own.id}`), ownIds, 'responses of one survey');
  t.strictSame(await list(`?surveyId=${own.id}&limit=2&skip=3`), ownIds.slice(3, 5));
  t.strictSame(await list('?limit=100000'), ids, 'a larger limit is reduced, not refused');
  const limited = (await fresh.manage('GET', path)).json.data;
  t.equal(limited.length, ownIds.length, 'only workspaces that the key can access');
  t.equal((await fresh.manage('GET', `${path}?surveyId=${foreign.id}`)).status, 401);
  t.equal((await fresh.manage('GET', `${path}?surveyId=cnothing`)).status, 404);
  t.equal((await fresh.manage('GET', `${path}?limit=x`)).status, 400);

  for (let i = 0; i < 10; i += 1) await ask(path, { ...empty, surveyId: own.id });
  t.equal((await list(`?surveyId=${own.id}`)).length, 25, 'the default limit for a survey');
});

t.test('GET list: a page far into the lists of several workspaces', async (t) => {
  let rowsMax = 0;
  const fresh = await startApi(t, {
    parts: ({ db }) => ({
      db: db.withPlugin({
        transformQuery: ({ node }) => node,
        transformResult: async ({ result }) => {
          rowsMax = Math.max(rowsMax, result.rows.length);
          return result;
        },
      }),
    }),
  });
  await fresh.addWorkspace('ws2');
  const both = await fresh.addKey({ [workspaceId]: 'read', ws2: 'read' });
  const survey = await addSurvey(fresh);
  // No function takes this many arguments.
  const count = 150_000;
  await sql`insert into responses ("id", "createdAt", "updatedAt", "workspaceId", "surveyId", "finished", "data", "variables", "ttc", "meta")
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    select 'c' || substr(cast(1000000 + n as text), 2), '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', ${workspaceId}, ${survey.id}, 1, '{}', '{}', '{}', '{}'
    from numbers`.execute(fresh.context.db);
  const reply = await fresh.client(
    'GET',
    `/api/v1/management/responses?skip=${count - 2}&limit=5`,
    undefined,
    { 'x-api-key': both },
  );
  t.equal(reply.status, 200);
  t.strictSame(column(reply.json.data, 'id'), ['c000002', 'c000001']);
  t.ok(rowsMax <= 10, `the database returns only the page: ${rowsMax} rows at most`);
});

t.test('GET list: orders equal times by id', async (t) => {
  api.advance(1);
  const tied = await addSurvey(api);
  for (let i = 0; i < 5; i += 1) await api.manage('POST', path, { ...empty, surveyId: tied.id });
  const list = await api.manage('GET', `${path}?surveyId=${tied.id}`);
  const ids: string[] = list.json.data.map(({ id }: { id: string }) => id);
  t.strictSame(ids, [...ids].sort().reverse());
  const all = await api.manage('GET', `${path}?limit=5`);
  t.strictSame(column(all.json.data, 'id'), ids);
});

t.test('DELETE: also deletes a display that was linked later', async (t) => {
  const { id } = await create();
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id });
  const displayId = display.json.data.id;
  const link = await api.client('PUT', `/api/v1/client/${workspaceId}/displays/${displayId}`, {
    responseId: id,
  });
  t.equal(link.status, 200);
  t.equal((await api.manage('DELETE', `${path}/${id}`)).status, 200);
  const left = await db.selectFrom('displays').select('id').where('id', '=', displayId).execute();
  t.strictSame(left, []);
});
