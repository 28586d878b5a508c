import t from 'tap';
import { LIST_PAGE_BYTES_MAX, NOTE_LENGTH_MAX, RESPONSE_NOTES_MAX } from '#api/content-limits.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const { db } = api.context;
const responses = '/api/v1/management/responses';
const survey = await addSurvey(api);
const addResponse = async (): Promise<string> =>
  (await api.manage('POST', responses, { surveyId: survey.id, data: { q1: 'x' }, finished: false })).json.data
    .id;
const add = (id: string, body: unknown) => api.manage('POST', `${responses}/${id}/notes`, body);

t.test('200: creates, lists, changes, resolves and deletes notes', async (t) => {
  const id = await addResponse();
  const now = new Date(api.context.clock()).toISOString();
  const made = await add(id, { text: 'Call back' });
  t.equal(made.status, 200, made.text);
  const note = made.json.data;
  t.match(note, { text: 'Call back', isResolved: false, isEdited: false, createdAt: now, updatedAt: now });
  api.advance(1000);
  const second = (await add(id, { text: 'Done' })).json.data;
  const url = `${responses}/${id}/notes`;
  t.strictSame((await api.manage('GET', url)).json.data, [note, second], 'oldest first');
  t.equal((await api.manage('GET', `/api/v1/responses/${id}/notes`)).status, 404);

  const resolved = await api.manage('PUT', `${url}/${note.id}`, { isResolved: true });
  const later = new Date(api.context.clock()).toISOString();
  t.strictSame(resolved.json.data, { ...note, isResolved: true, updatedAt: later });
  const edited = await api.manage('PUT', `${url}/${note.id}`, { text: 'Called back' });
  t.strictSame(edited.json.data, { ...resolved.json.data, text: 'Called back', isEdited: true });
  t.strictSame((await api.manage('GET', url)).json.data[0], edited.json.data);

  const deleted = await api.manage('DELETE', `${url}/${note.id}`);
  t.strictSame(deleted.json.data, edited.json.data);
  t.equal((await api.manage('DELETE', `${url}/${note.id}`)).status, 404);
  t.strictSame((await api.manage('GET', url)).json.data, [second]);
});

t.test('list and get show the notes of a response, update and delete do not', async (t) => {
  const id = await addResponse();
  const note = (await add(id, { text: 'Shown' })).json.data;
  t.strictSame((await api.manage('GET', `${responses}/${id}`)).json.data.notes, [note]);
  const listed = (await api.manage('GET', `${responses}?surveyId=${survey.id}`)).json.data;
  t.strictSame(listed.find((response: { id: string }) => response.id === id).notes, [note]);
  t.notOk('notes' in (await api.manage('PUT', `${responses}/${id}`, { finished: true })).json.data);
  t.notOk('notes' in (await api.manage('DELETE', `${responses}/${id}`)).json.data);
  t.strictSame(await db.selectFrom('responseNotes').selectAll().where('responseId', '=', id).execute(), []);
});

t.test('the author is the person who is logged in or who created the key', async (t) => {
  const id = await addResponse();
  const owner = await db.selectFrom('users').select(['id', 'name']).executeTakeFirstOrThrow();
  const browser = await logInOwner(api);
  const byHand = await browser.call('POST', `${responses}/${id}/notes`, { text: 'By hand' });
  t.strictSame(byHand.json.data.user, owner);
  const { data } = (await browser.call('POST', '/api/v1/api-keys', { label: 'Mine' })).json;
  const byKey = await api.client(
    'POST',
    `${responses}/${id}/notes`,
    { text: 'By key' },
    { 'x-api-key': data.apiKey ?? data.key },
  );
  t.strictSame(byKey.json.data.user, owner);
  const nobody = await api.client(
    'POST',
    `${responses}/${id}/notes`,
    { text: 'By a key of nobody' },
    { 'x-api-key': await api.addKey({ [workspaceId]: 'write' }) },
  );
  t.equal(nobody.json.data.user, null);
});

t.test('400: a malformed note; 404 and 401: no access', async (t) => {
  const id = await addResponse();
  const note = (await add(id, { text: 'x' })).json.data;
  const elsewhere = await addResponse();
  for (const body of [
    {},
    { text: '' },
    { text: ' \n ' },
    { text: 'x'.repeat(NOTE_LENGTH_MAX + 1) },
    { text: 1 },
    [],
  ]) {
    const reply = await add(id, body);
    t.equal(reply.status, 400, JSON.stringify(body).slice(0, 40));
  }
  t.match((await add(id, { text: '' })).json.details, {
    text: `Give a text of 1 to ${NOTE_LENGTH_MAX} characters`,
  });
  t.equal((await api.manage('PUT', `${responses}/${id}/notes/${note.id}`, { text: '' })).status, 400);
  for (const path of [`${id}/notes/unknown`, `${elsewhere}/notes/${note.id}`]) {
    const reply = await api.manage('PUT', `${responses}/${path}`, { text: 'y' });
    t.equal(reply.status, 404, path);
    t.match(reply.json.details, { resource_type: 'Note' });
  }
  t.equal((await add('unknown', { text: 'x' })).status, 404);
  const reader = { 'x-api-key': await api.addKey({ [workspaceId]: 'read' }) };
  const stranger = { 'x-api-key': await api.addKey({ ws2: 'manage' }) };
  t.equal((await api.client('GET', `${responses}/${id}/notes`, undefined, reader)).status, 200);
  t.equal((await api.client('POST', `${responses}/${id}/notes`, { text: 'x' }, reader)).status, 401);
  t.equal((await api.client('GET', `${responses}/${id}/notes`, undefined, stranger)).status, 401);
});

t.test('403: the maximum of a response holds, also with two concurrent calls', async (t) => {
  const id = await addResponse();
  for (let i = 1; i < RESPONSE_NOTES_MAX; i++) await add(id, { text: 'x' });
  const replies = await Promise.all([add(id, { text: 'x' }), add(id, { text: 'x' })]);
  t.strictSame(replies.map(({ status }) => status).sort(), [200, 403]);
});

t.test('two concurrent updates keep each other’s changes', async (t) => {
  const id = await addResponse();
  const note = (await add(id, { text: 'x' })).json.data;
  const url = `${responses}/${id}/notes/${note.id}`;
  await Promise.all([api.manage('PUT', url, { text: 'y' }), api.manage('PUT', url, { isResolved: true })]);
  const [stored] = (await api.manage('GET', `${responses}/${id}/notes`)).json.data;
  t.match(stored, { text: 'y', isResolved: true, isEdited: true });
});

t.test('notes count for the size of a page', async (t) => {
  const other = await addSurvey(api);
  const body = { surveyId: other.id, data: {}, finished: false };
  const text = 'x'.repeat(NOTE_LENGTH_MAX);
  const perResponse = RESPONSE_NOTES_MAX * NOTE_LENGTH_MAX;
  const wanted = Math.ceil((LIST_PAGE_BYTES_MAX / perResponse) * 1.2);
  for (let i = 0; i < wanted; i++) {
    const { id } = (await api.manage('POST', responses, body)).json.data;
    const notes = Array.from({ length: RESPONSE_NOTES_MAX }, (_, n) => ({
      id: `n${i}x${n}`,
      responseId: id,
      userId: null,
      text,
      isResolved: 0 as const,
      isEdited: 0 as const,
      createdAt: 'x',
      updatedAt: 'x',
    }));
    await db.insertInto('responseNotes').values(notes).execute();
  }
  const refused = await api.manage('GET', `${responses}?surveyId=${other.id}&limit=${wanted}`);
  t.equal(refused.status, 400);
  t.match(refused.json.message, 'bytes');
});
