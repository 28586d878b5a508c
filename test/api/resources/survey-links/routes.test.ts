/** GET /s/{surveyId} answers links to surveys. */
import t from 'tap';
import { addSurvey, publicUrl, startApi } from '#test/support/api-app.ts';

t.test('404: the same page for every unknown id', async (t) => {
  const api = await startApi(t);
  const open = await addSurvey(api, { type: 'link' });
  const draft = await addSurvey(api, { type: 'link', status: 'draft' });
  const texts = new Set<string>();
  for (const id of [open.id, draft.id, 'nosuchsurvey', 'not%20an%20id', `${open.id}?suId=x`]) {
    const reply = await api.client('GET', `/s/${id}`);
    t.equal(reply.status, 404, id);
    t.match(reply.headers, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'private, no-store',
    });
    texts.add(reply.text);
  }
  t.equal(texts.size, 1, 'the page does not reveal which surveys exist');
  t.match([...texts][0], 'SURVEY_URL');
});

t.test('302: to SURVEY_URL, with all parameters of the link', async (t) => {
  const api = await startApi(t, { env: { SURVEY_URL: 'https://surveys.example.com/answer?id={surveyId}' } });
  const reply = await api.client('GET', '/s/abc?suId=x&suToken=y%26z');
  t.equal(reply.status, 302);
  t.equal(reply.headers.location, 'https://surveys.example.com/answer?id=abc&suId=x&suToken=y%26z');
  for (const id of ['%2F%2Fevil.example', '..%2Fadmin', 'a.b']) {
    const odd = await api.client('GET', `/s/${id}`);
    t.equal(odd.status, 404, id);
    t.equal(odd.headers.location, undefined);
  }
});

t.test('404: SURVEY_URL is this path, so another server shows the surveys', async (t) => {
  const api = await startApi(t, { env: { SURVEY_URL: `${publicUrl}/s/{surveyId}` } });
  t.equal((await api.client('GET', '/s/abc')).status, 404);
});
