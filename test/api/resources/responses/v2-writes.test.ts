/** v2 creates, changes and deletes responses. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db } = api.context;
await api.addWorkspace('ws2');
const survey = await addSurvey(api, {
  questions: [
    {
      id: 'q1',
      type: 'openText',
      headline: { default: 'What?' },
      required: false,
    },
    {
      id: 'q2',
      type: 'multipleChoiceSingle',
      headline: { default: 'Which?' },
      required: false,
      choices: [
        { id: 'a', label: { default: 'A' } },
        { id: 'other', label: { default: 'Other' } },
      ],
    },
    {
      id: 'q3',
      type: 'fileUpload',
      headline: { default: 'File?' },
      required: false,
      allowMultipleFiles: false,
    },
  ],
});
const path = '/api/v2/management/responses';
const send = (body: Record<string, unknown> = {}) =>
  api.manage('POST', path, { surveyId: survey.id, finished: false, data: { q1: 'first' }, ...body });
await api.manage('POST', '/api/v1/webhooks', {
  url: 'https://hooks.example.com/in',
  triggers: ['responseCreated', 'responseUpdated', 'responseFinished'],
});
const eventsOf = async (responseId: string): Promise<readonly string[]> =>
  (
    await db.selectFrom('events').select('type').where('responseId', '=', responseId).orderBy('id').execute()
  ).map(({ type }) => type);
const as = (key: string, method: 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown) =>
  api.client(method, url, body, { 'x-api-key': key });

t.test('POST 201: stores all fields, and returns them in the flat format of v2', async (t) => {
  await api.client('POST', `/api/v1/client/${workspaceId}/user`, {
    userId: 'jane',
    attributes: { email: 'jane@example.com' },
  });
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, {
    surveyId: survey.id,
    userId: 'jane',
  });
  const reply = await send({
    finished: true,
    displayId: display.json.data.id,
    singleUseId: 'once',
    endingId: 'end1',
    language: 'de',
    variables: { score: 3 },
    ttc: { q1: 1200 },
    meta: { source: 'import', url: 'https://x.example/', userAgent: { browser: 'Firefox' }, country: 'DE' },
    userId: 'jane',
    createdAt: '2025-05-01T10:00:00Z',
    unknown: 'ignored',
  });
  t.equal(reply.status, 201);
  const { id, contactId } = reply.json.data;
  t.match(id, /^c[a-z0-9]{24}$/);
  t.strictSame(reply.json, {
    data: {
      id,
      createdAt: '2025-05-01T10:00:00.000Z',
      updatedAt: '2025-05-01T10:00:00.000Z',
      finished: true,
      surveyId: survey.id,
      contactId,
      endingId: 'end1',
      data: { q1: 'first' },
      variables: { score: 3 },
      ttc: { q1: 1200, _total: 1200 },
      meta: { source: 'import', url: 'https://x.example/', userAgent: { browser: 'Firefox' }, country: 'DE' },
      contactAttributes: { email: 'jane@example.com', userId: 'jane' },
      singleUseId: 'once',
      language: 'de',
      displayId: display.json.data.id,
    },
  });
  t.match(contactId, /^c/);
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json, reply.json);
  t.strictSame([...(await eventsOf(id))].sort(), ['responseCreated', 'responseFinished']);
});

t.test('POST 201: an unfinished response has one event, and is in the list', async (t) => {
  const { id } = (await send()).json.data;
  t.strictSame(await eventsOf(id), ['responseCreated']);
  const { data } = (await api.manage('GET', `${path}?surveyId=${survey.id}`)).json;
  t.ok(data.some((one: { id: string }) => one.id === id));
});

t.test('POST 201: a question named language keeps its answer', async (t) => {
  const { data } = (await send({ data: { language: 'de' } })).json.data;
  t.strictSame(data, { language: 'de' });
});

t.test('POST 422: the wrong shape', async (t) => {
  const missing = await api.manage('POST', path, {});
  t.equal(missing.status, 422);
  t.strictSame(missing.json.error.details.map(({ field }: { field: string }) => field).sort(), [
    'data',
    'finished',
    'surveyId',
  ]);
  for (const [field, body] of [
    ['finished', { finished: 'yes' }],
    ['surveyId', { surveyId: 'No Id' }],
    ['data.q1', { data: { q1: true } }],
    ['createdAt', { createdAt: 'soon' }],
    ['data', { data: { q1: 'x'.repeat(600_000) } }],
    ['language', { language: 'x'.repeat(1_025) }],
  ] as const) {
    const reply = await send(body);
    t.equal(reply.status, 422, field);
    t.match(reply.json.error.details, [{ field, issue: String }]);
  }
});

t.test('POST 400: a file that is not here', async (t) => {
  const reply = await send({ data: { q3: ['https://elsewhere.example/file.pdf'] } });
  t.equal(reply.status, 400);
  const details = [{ field: 'error', issue: 'Invalid file upload response' }];
  t.match(reply.json.error, { code: 400, message: 'Bad Request', details });
  const malformed = await api.manage('POST', path, '{"surveyId":');
  t.equal(malformed.status, 400);
  t.match(malformed.json.error.details, [{ field: 'error', issue: /JSON/ }]);
});

t.test('POST 404, 401, 409', async (t) => {
  const unknown = await send({ surveyId: 'cnothing' });
  t.equal(unknown.status, 404);
  t.strictSame(unknown.json.error.details, [{ field: 'survey', issue: 'not found' }]);
  const body = { surveyId: survey.id, finished: true, data: {} };
  t.equal((await as(await api.addKey({ [workspaceId]: 'read' }), 'POST', path, body)).status, 401);
  t.equal((await as(await api.addKey({ ws2: 'manage' }), 'POST', path, body)).status, 401);
  t.equal((await api.client('POST', path, body)).status, 401);
  t.equal((await send({ singleUseId: 'once' })).status, 409, 'a single-use link works once');
});

t.test('PUT 200: given maps replace the stored ones, absent fields stay', async (t) => {
  const { id } = (
    await send({ data: { q1: 'first', q2: 'A' }, variables: { a: 1 }, ttc: { q1: 5 }, meta: { source: 's' } })
  ).json.data;
  api.advance(1000);
  const reply = await api.manage('PUT', `${path}/${id}`, { data: { q2: 'A' } });
  t.equal(reply.status, 200);
  t.match(reply.json.data, {
    id,
    finished: false,
    variables: { a: 1 },
    ttc: { q1: 5 },
    meta: { source: 's' },
  });
  t.strictSame(reply.json.data.data, { q2: 'A' });
  t.ok(reply.json.data.updatedAt > reply.json.data.createdAt);
  const more = await api.manage('PUT', `${path}/${id}`, {
    variables: {},
    ttc: { q2: 7 },
    meta: {},
    language: 'fr',
    endingId: 'e',
    finished: true,
  });
  t.match(more.json.data, { language: 'fr', endingId: 'e', finished: true });
  t.strictSame(more.json.data.variables, {});
  t.strictSame(more.json.data.ttc, { q2: 7, _total: 7 });
  t.strictSame(more.json.data.meta, {});
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json, more.json);
  t.strictSame([...(await eventsOf(id))].sort(), [
    'responseCreated',
    'responseFinished',
    'responseUpdated',
    'responseUpdated',
  ]);
});

t.test('PUT 200: accepts a whole response as it was read', async (t) => {
  const { id } = (await send({ language: 'de' })).json.data;
  const { data } = (await api.manage('GET', `${path}/${id}`)).json;
  const reply = await api.manage('PUT', `${path}/${id}`, { ...data, language: null, finished: true });
  t.equal(reply.status, 200);
  t.strictSame(reply.json.data, { ...data, language: null, finished: true });
});

t.test('PUT 4xx', async (t) => {
  const { id } = (await send()).json.data;
  const one = `${path}/${id}`;
  for (const [status, field, body] of [
    [422, 'finished', { finished: 1 }],
    [422, 'data.q1', { data: { q1: null } }],
    [422, 'meta.source', { meta: { source: 'x'.repeat(600_000) } }],
    [400, 'error', { data: { q3: ['/storage/ws2/private/x.pdf'] } }],
  ] as const) {
    const reply = await api.manage('PUT', one, body);
    t.equal(reply.status, status, field);
    if (field !== 'meta.source') t.match(reply.json.error.details, [{ field }]);
  }
  t.strictSame((await api.manage('GET', one)).json.data.data, { q1: 'first' }, 'nothing has changed');
  t.equal((await api.manage('PUT', `${path}/cnothing`, {})).status, 404);
  t.equal((await api.manage('PUT', `${path}/NoId`, {})).status, 422);
  t.equal((await as(await api.addKey({ [workspaceId]: 'read' }), 'PUT', one, {})).status, 401);
});

t.test('DELETE 200: returns the deleted response, and deletes its display', async (t) => {
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id });
  const displayId = display.json.data.id;
  const made = await send({ displayId });
  const one = `${path}/${made.json.data.id}`;
  t.equal((await as(await api.addKey({ [workspaceId]: 'write' }), 'DELETE', one)).status, 401);
  const reply = await api.manage('DELETE', one);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, made.json);
  t.equal((await api.manage('DELETE', one)).status, 404);
  t.strictSame(await db.selectFrom('displays').select('id').where('id', '=', displayId).execute(), []);
});
