/** POST /api/v1/management/surveys/{surveyId}/link-emails */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { lastMail, mailsOf } from '#test/support/mails.ts';

const surveyUrl = 'https://surveys.example.com/answer?id={surveyId}';
const addressOf = (id: string): string => surveyUrl.replace('{surveyId}', id);
const api = await startApi(t, { env: { SURVEY_URL: surveyUrl } });
const send = (id: string, body: unknown = { email: 'a@b.example' }) =>
  api.manage('POST', `/api/v1/management/surveys/${id}/link-emails`, body);

t.test('200: the mailed link proves the address to a survey that requires it', async (t) => {
  const survey = await addSurvey(api, {
    type: 'link',
    isVerifyEmailEnabled: true,
    name: 'Hello\r\nBcc: x@y.z',
  });
  const reply = await send(survey.id, { email: 'A@B.example' });
  t.equal(reply.status, 200);
  const mail = await lastMail(api);
  t.match(mail, { kind: 'surveyLink', recipient: 'a@b.example', subject: 'Your link to Hello Bcc: x@y.z' });
  const url = /https:\S+/.exec(mail.body)?.[0] ?? '';
  t.match(url, `${addressOf(survey.id)}&verify=`);
  const answer = (link: string) =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      surveyId: survey.id,
      finished: true,
      data: { q1: 'x' },
      meta: { url: link },
    });
  t.equal((await answer(addressOf(survey.id))).status, 403);
  t.equal((await answer(url)).status, 200);
});

t.test('200: a survey with single-use links gets one', async (t) => {
  api.advance(1);
  const survey = await addSurvey(api, { type: 'link', singleUse: { enabled: true, isEncrypted: true } });
  t.equal((await send(survey.id)).status, 200);
  t.match((await lastMail(api)).body, /suId=c[a-z0-9]{24}&suToken=[0-9a-f]{64}&verify=/);
});

t.test('400: SURVEY_URL is not set', async (t) => {
  const bare = await startApi(t);
  const survey = await addSurvey(bare, { type: 'link' });
  const path = `/api/v1/management/surveys/${survey.id}/link-emails`;
  const reply = await bare.manage('POST', path, { email: 'a@b.example' });
  t.equal(reply.status, 400);
  t.match(reply.json, { code: 'bad_request', message: /SURVEY_URL/ });
  t.strictSame(await mailsOf(bare), [], 'no mail is sent');
});

t.test('400, 401, 404', async (t) => {
  const survey = await addSurvey(api, { type: 'link' });
  t.equal((await send(survey.id, { email: 'nobody' })).status, 400);
  t.equal((await send(survey.id, {})).status, 400);
  t.equal((await send((await addSurvey(api, { type: 'app' })).id)).status, 400);
  t.equal((await send((await addSurvey(api, { type: 'link', status: 'draft' })).id)).status, 400);
  t.equal((await send('unknown')).status, 404);
  const path = `/api/v1/management/surveys/${survey.id}/link-emails`;
  t.equal((await api.client('POST', path, { email: 'a@b.example' })).status, 401);
  const reader = await api.addKey({ [workspaceId]: 'read' });
  t.equal((await api.client('POST', path, { email: 'a@b.example' }, { 'x-api-key': reader })).status, 401);
});
