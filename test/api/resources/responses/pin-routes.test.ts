/** The PIN of a survey gives a token for responses, and nobody can try all PINs. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const survey = await addSurvey(api, { pin: '1234' });
const path = (id: string, version = 'v1', scope = workspaceId) =>
  `/api/${version}/client/${scope}/surveys/${id}/pin`;
const enter = (pin: unknown, address = '203.0.113.1', id: string = survey.id) =>
  api.client('POST', path(id), { pin }, { 'x-forwarded-for': address });

for (const version of ['v1', 'v2']) {
  t.test(`200: ${version}: the token gives access to the survey`, async (t) => {
    const reply = await api.client('POST', path(survey.id, version), { pin: '1234' });
    t.equal(reply.status, 200, reply.text);
    t.equal(reply.headers['cache-control'], 'private, no-store');
    t.equal(reply.headers['access-control-allow-origin'], '*');
    const { pinAuthToken } = reply.json.data;
    const body = { surveyId: survey.id, finished: true, data: { q1: 'x' } };
    const responses = `/api/${version}/client/${workspaceId}/responses`;
    t.equal((await api.client('POST', responses, body)).status, 403);
    t.equal((await api.client('POST', responses, { ...body, pinAuthToken })).status, 200);
  });
}

t.test('403: a wrong PIN; 429 for a while after ten of them', async (t) => {
  for (let i = 0; i < 10; i += 1) {
    const reply = await enter('0000');
    t.equal(reply.status, 403);
    t.strictSame(reply.json, {
      code: 'forbidden',
      message: 'The PIN is wrong',
      details: { surveyId: survey.id },
    });
  }
  const blocked = await enter('1234');
  t.equal(blocked.status, 429, 'the right PIN is refused too');
  t.equal(blocked.json.code, 'too_many_requests');
  t.equal(blocked.headers['retry-after'], '600');
  t.equal((await enter('1234', '203.0.113.2')).status, 200, 'another address is not refused');
  const other = await addSurvey(api, { pin: '9999' });
  t.equal((await enter('9999', '203.0.113.1', other.id)).status, 200, 'another survey is not refused');
  api.advance(600_000);
  t.equal((await enter('1234')).status, 200, 'accepted again after the wait');
  t.equal((await enter('0000')).status, 403, 'wrong PINs are counted from zero');
  t.equal((await enter('1234')).status, 200);
});

t.test('many people with the right PIN can share an address', async (t) => {
  for (let i = 0; i < 30; i += 1) t.equal((await enter('1234', '203.0.113.3')).status, 200);
});

t.test('400, 403 and 404: each mistake has its error', async (t) => {
  for (const wrong of [undefined, null, 1234, 'x'.repeat(65)]) {
    const reply = await enter(wrong);
    t.equal(reply.status, 400, String(wrong));
    t.match(reply.json.details, { pin: String });
  }
  t.match(await api.client('POST', path('cnothing'), { pin: '1' }), {
    status: 404,
    json: { message: 'Survey not found' },
  });
  await api.addWorkspace('ws2');
  t.match(await api.client('POST', path(survey.id, 'v1', 'ws2'), { pin: '1234' }), {
    status: 404,
    json: { message: 'Survey not found' },
  });
  t.match(await api.client('POST', path(survey.id, 'v1', 'nope'), { pin: '1234' }), {
    status: 404,
    json: { message: 'Workspace not found' },
  });
  const open = await addSurvey(api);
  t.match(await enter('1234', '203.0.113.4', open.id), {
    status: 400,
    json: { message: 'Survey is not protected by a PIN' },
  });
  const paused = await addSurvey(api, { pin: '1234', status: 'paused' });
  t.equal((await enter('1234', '203.0.113.4', paused.id)).status, 403, 'refused as responses are');
});
