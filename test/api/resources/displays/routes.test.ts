import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db } = api.context;
const v1 = `/api/v1/client/${workspaceId}/displays`;
const v2 = `/api/v2/client/${workspaceId}/displays`;
const responses = `/api/v1/client/${workspaceId}/responses`;
const survey = await addSurvey(api);
await api.addWorkspace('ws2', 'env2');

const display = async (fields: Record<string, unknown> = {}): Promise<string> =>
  (await api.client('POST', v1, { surveyId: survey.id, ...fields })).json.data.id;
const respond = async (fields: Record<string, unknown> = {}): Promise<string> =>
  (await api.client('POST', responses, { surveyId: survey.id, finished: false, data: {}, ...fields })).json
    .data.id;

t.test('POST 200: v1 creates an unknown contact, once', async (t) => {
  const first = await api.client('POST', v1, { surveyId: survey.id, userId: 'u1', responseId: 'ignored' });
  t.equal(first.status, 200);
  const { id, contactId } = first.json.data;
  t.strictSame(first.json, { data: { id, contactId, surveyId: survey.id } });
  t.type(contactId, 'string');
  const second = await api.client('POST', v1, { surveyId: survey.id, userId: 'u1' });
  t.equal(second.json.data.contactId, contactId);
  const attributes = await db
    .selectFrom('contactAttributes')
    .select('value')
    .where('contactId', '=', contactId)
    .execute();
  t.strictSame(attributes, [{ value: 'u1' }], 'the user id is stored as an attribute');
});

t.test('POST 200: v2 links a known contact and ignores an unknown one', async (t) => {
  const { contactId } = (await api.client('POST', v1, { surveyId: survey.id, userId: 'u1' })).json.data;
  t.equal((await api.client('POST', v2, { surveyId: survey.id, contactId })).json.data.contactId, contactId);
  for (const stranger of ['cnothing', 'No Id', null]) {
    const reply = await api.client('POST', v2, { surveyId: survey.id, contactId: stranger, userId: 'u1' });
    t.equal(reply.json.data.contactId, null);
  }
});

t.test('POST: errors', async (t) => {
  const paused = await addSurvey(api, { status: 'paused' });
  for (const path of [v1, v2]) {
    const base = path.replace(workspaceId, 'nope');
    t.equal(
      (await api.client('POST', base, '{')).json.message,
      'Workspace not found',
      'checked before the body',
    );
    t.strictSame((await api.client('POST', path, { surveyId: 'No' })).json.details, {
      surveyId: 'Invalid cuid2',
    });
    const unknown = await api.client('POST', path, { surveyId: 'cnothing' });
    t.strictSame(unknown.json.details, { resource_id: 'cnothing', resource_type: 'Survey' });
    const foreign = await api.client('POST', path.replace(workspaceId, 'env2'), { surveyId: survey.id });
    t.equal(foreign.json.message, 'Survey not found');
    const closed = await api.client('POST', path, { surveyId: paused.id });
    t.equal(closed.status, 403);
    t.strictSame(closed.json.details, { surveyId: paused.id });
  }
  const long = await api.client('POST', v1, { surveyId: survey.id, userId: 'u'.repeat(256) });
  t.strictSame(long.json.details, { userId: 'User ID cannot exceed 255 characters' });
});

t.test('PUT 200: links a display to a user and a response; a repetition changes nothing', async (t) => {
  const id = await display();
  const responseId = await respond();
  for (let i = 0; i < 2; i += 1) {
    const reply = await api.client('PUT', `${v1}/${id}`, { responseId, userId: 'u9' });
    t.equal(reply.status, 200);
    t.strictSame(reply.json, { data: {} });
  }
  t.strictSame((await api.client('PUT', `${v1}/${id}`, {})).json, { data: {} }, 'an empty body is accepted');
  const found = await api.client('GET', `${v1}/${id}/response`);
  t.strictSame(found.json, { data: { responseId } });
  const row = await db
    .selectFrom('displays')
    .innerJoin('contacts', 'contacts.id', 'displays.contactId')
    .select('contacts.userId')
    .where('displays.id', '=', id)
    .executeTakeFirst();
  t.strictSame(row, { userId: 'u9' }, 'the unknown user was created');
});

t.test('PUT 400: rows of other workspaces; nothing is changed', async (t) => {
  const id = await display();
  const taken = await display();
  const linked = await respond({ displayId: taken });
  const other = await addSurvey(api);
  const foreign = await respond({ surveyId: other.id });
  const cases: readonly (readonly [string, string, string])[] = [
    [id, 'cnothing', 'The response does not belong to the survey of this display'],
    [id, foreign, 'The response does not belong to the survey of this display'],
    [id, linked, 'The response is linked to another display'],
    [taken, await respond(), 'The display is linked to another response'],
  ];
  for (const [displayId, responseId, message] of cases) {
    const reply = await api.client('PUT', `${v1}/${displayId}`, { responseId, userId: 'not-kept' });
    t.equal(reply.status, 400);
    t.strictSame(reply.json, { code: 'bad_request', message, details: { responseId } });
  }
  const kept = await db.selectFrom('contacts').select('id').where('userId', '=', 'not-kept').execute();
  t.strictSame(kept, [], 'nothing was stored');
});

t.test('404: unknown displays, and those of other workspaces', async (t) => {
  const id = await display();
  for (const path of [`${v1}/cnothing`, `/api/v1/client/ws2/displays/${id}`]) {
    for (const reply of [await api.client('PUT', path, {}), await api.client('GET', `${path}/response`)]) {
      t.equal(reply.status, 404);
      t.equal(reply.json.details.resource_type, 'Display');
    }
  }
  t.equal(
    (await api.client('GET', `/api/v1/client/nope/displays/${id}/response`)).json.message,
    'Workspace not found',
  );
});

t.test('GET response 200: null while there is none', async (t) => {
  t.strictSame((await api.client('GET', `${v1}/${await display()}/response`)).json, {
    data: { responseId: null },
  });
});

t.test('403: a survey is closed at its date, before a job has ended it', async (t) => {
  const closeOn = new Date(api.context.clock() + 1_000).toISOString();
  const { id: surveyId } = await addSurvey(api, { closeOn });
  const body = { surveyId, finished: true, data: { q1: 'Yes' } };
  const both = async () => [
    (await api.client('POST', v1, { surveyId })).status,
    (await api.client('POST', responses, body)).status,
    (await api.client('POST', responses, { ...body, meta: { url: 'https://example.com/' } })).status,
  ];
  api.advance(999);
  t.strictSame(await both(), [200, 200, 200]);
  const { id } = (await api.client('POST', responses, { ...body, finished: false })).json.data;
  api.advance(1);
  t.strictSame(await both(), [403, 403, 403]);
  const update = await api.client('PUT', `${responses}/${id}`, { finished: true, data: { q1: 'No' } });
  t.equal(update.status, 403, 'as after its end');
  t.equal((await api.manage('GET', `/api/v1/management/surveys/${surveyId}`)).json.data.status, 'inProgress');
});
