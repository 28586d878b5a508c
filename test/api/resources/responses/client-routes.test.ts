/** What a client has to prove. test/conversations/responses.md has the rest. */
import t from 'tap';
import { verifiedEmailToken } from '#api/resources/responses/submission-checks.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { signer } = api.context;
const send = (surveyId: string, fields: object = {}) =>
  api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    ...{ surveyId, finished: false, data: { q1: 'x' } },
    ...fields,
  });

t.test('403: a survey that needs a verified address, without its link', async (t) => {
  const { id } = await addSurvey(api, { isVerifyEmailEnabled: true });
  const link = (token: string) => ({ meta: { url: `https://x.example/s/${id}?verify=${token}` } });
  const token = verifiedEmailToken(id, 'me@example.com', signer);
  for (const fields of [
    {},
    { meta: { url: 'no url' } },
    link(''),
    link(token.replace(/^./, 'Z')),
    link(verifiedEmailToken('c1', 'me@example.com', signer)),
  ]) {
    const reply = await send(id, fields);
    t.equal(reply.status, 403);
    t.equal(reply.json.message, 'Survey requires email verification');
  }
  t.equal((await send(id, link(token))).status, 200);
});

t.test('400: a link that works once, without its signature', async (t) => {
  const { id } = await addSurvey(api, { singleUse: { enabled: true, isEncrypted: true } });
  const links = await api.manage('GET', `/api/v1/management/surveys/${id}/singleUseIds?limit=1`);
  const url: string = links.json.data[0];
  const singleUseId = new URL(url).searchParams.get('suId');
  for (const wrong of [url.replace(/suToken=./, 'suToken=Z'), url.replace(/&suToken=.*/, '')]) {
    const reply = await send(id, { singleUseId, meta: { url: wrong } });
    t.equal(reply.json.message, 'Invalid single use id');
  }
  t.equal((await send(id, { singleUseId, meta: { url } })).status, 200);
});
