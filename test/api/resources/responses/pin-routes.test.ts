/** Nobody can try all PINs of a survey. test/conversations/responses.md has the rest. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const survey = await addSurvey(api, { pin: '1234' });
const enter = (pin: string, address = '203.0.113.1', id: string = survey.id) =>
  api.client(
    'POST',
    `/api/v1/client/${workspaceId}/surveys/${id}/pin`,
    { pin },
    { 'x-forwarded-for': address },
  );

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
