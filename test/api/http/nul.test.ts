/**
 * A NUL character, which PostgreSQL cannot store, is refused everywhere and on both databases. The tests of the
 * description send one in each path and query.
 */
import t from 'tap';
import { writeCursor } from '#api/http/cursor-pagination.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const survey = await addSurvey(api);

t.test('400: NUL in a body, as value, as key, or nested', async (t) => {
  const responses = `/api/v1/client/${workspaceId}/responses`;
  for (const data of [{ q1: 'a\0b' }, { 'q\0': 'x' }, { q1: ['a', '\0'] }, { q1: { deep: { er: '\0' } } }]) {
    const reply = await api.client('POST', responses, { surveyId: survey.id, finished: true, data });
    t.equal(reply.status, 400, JSON.stringify(data));
    t.match(reply.text, /NUL/);
  }
  const kept = await api.client('POST', responses, {
    surveyId: survey.id,
    finished: true,
    data: { q1: 'the six characters \\u0000' },
  });
  t.equal(kept.status, 200);
  const stored = await api.manage('GET', `/api/v1/management/responses/${kept.json.data.id}`);
  t.equal(stored.json.data.data.q1, 'the six characters \\u0000');
});

t.test('400: NUL in a path', async (t) => {
  t.match(await api.manage('GET', '/api/v1/management/surveys/%00'), {
    status: 400,
    json: { code: 'bad_request', message: /NUL/ },
  });
});

t.test('400: NUL in a form', async (t) => {
  const reply = await api.client(
    'POST',
    '/api/auth/callback/credentials',
    'email=a%00b&password=x&csrfToken=y',
  );
  t.equal(reply.status, 400);
});

t.test('400: NUL in a cursor', async (t) => {
  const cursor = writeCursor({ sortBy: 'createdAt', value: '\0', id: 'a\0' });
  const reply = await api.manage('GET', `/api/v3/action-classes?workspaceId=${workspaceId}&cursor=${cursor}`);
  t.equal(reply.status, 400);
  t.match(reply.text, /cursor/);
});
