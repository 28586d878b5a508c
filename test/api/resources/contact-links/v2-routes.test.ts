/** Personal links lead to a survey, and to responses of the contact. */
import t from 'tap';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';

const DAY = 86_400_000;

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const v2 = '/api/v2/management';
const survey = await addSurvey(api, { type: 'link' });
const other = await addSurvey(api, { type: 'link' });
const attributes = { email: 'ada@example.com', userId: 'ada' };
const contactId: string = (await api.manage('POST', `${v2}/contacts`, { workspaceId, attributes })).json.data
  .id;
const pathOf = (surveyId: string, contact = contactId): string =>
  `${v2}/surveys/${surveyId}/contact-links/contacts/${contact}`;
const linkTo = async (surveyId: string, query = ''): Promise<string> =>
  (await api.manage('GET', pathOf(surveyId) + query)).json.data.surveyUrl;
const answer = (url: string, version = 'v1', surveyId: string = survey.id) =>
  api.client('POST', `/api/${version}/client/${workspaceId}/responses`, {
    surveyId,
    finished: true,
    data: { q1: 'hello' },
    meta: { url },
  });

t.test('GET 200: a link without expiry, and one with expiry', async (t) => {
  const endless = await api.manage('GET', pathOf(survey.id));
  t.equal(endless.status, 200);
  t.match(endless.json.data, { expiresAt: null });
  t.ok(endless.json.data.surveyUrl.startsWith(`${publicUrl}/s/${survey.id}?`));
  const { json } = await api.manage('GET', `${pathOf(survey.id)}?expirationDays=7`);
  const end = new Date(Math.ceil((api.context.clock() + 7 * DAY) / 1_000) * 1_000).toISOString();
  t.strictSame(Object.keys(json.data).sort(), ['expiresAt', 'surveyUrl']);
  t.equal(json.data.expiresAt, end);
});

for (const version of ['v1', 'v2']) {
  t.test(`a response through the link belongs to the contact (client ${version})`, async (t) => {
    const reply = await answer(await linkTo(survey.id, '?expirationDays=1'), version);
    t.equal(reply.status, 200);
    const { data } = (await api.manage('GET', `${v2}/responses/${reply.json.data.id}`)).json;
    t.match(data, { contactId, contactAttributes: attributes });
  });
}

t.test('refuses a link that has expired, is for another survey or was changed', async (t) => {
  const ending = await linkTo(survey.id, '?expirationDays=1');
  api.advance(DAY + 1_000);
  const endless = await linkTo(survey.id);
  const elsewhere = await linkTo(other.id);
  const changed = new URL(endless);
  changed.searchParams.set(
    'contactToken',
    (changed.searchParams.get('contactToken') ?? '').replace('c', 'd'),
  );
  for (const url of [ending, elsewhere, changed.href, `${publicUrl}/s/x?contactToken=`]) {
    const reply = await answer(url);
    t.equal(reply.status, 400, url);
    t.match(reply.json, { message: /personal link/, details: { surveyId: survey.id } });
  }
  t.equal((await answer(endless)).status, 200);
  t.equal((await answer(`${publicUrl}/s/x?contact=somebody`)).status, 200, 'other parameters are ignored');
});

t.test('the link of a single-use survey works once', async (t) => {
  const once = await addSurvey(api, { type: 'link', singleUse: { enabled: true, isEncrypted: true } });
  const url = await linkTo(once.id);
  const singleUseId = new URL(url).searchParams.get('suId');
  const send = () =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      surveyId: once.id,
      finished: true,
      data: { q1: 'hello' },
      singleUseId,
      meta: { url },
    });
  t.equal((await send()).status, 200);
  t.equal((await send()).status, 409);
});

t.test('GET 400, 401, 404, 422', async (t) => {
  const app = await addSurvey(api, { type: 'app', status: 'draft' });
  const notLink = await api.manage('GET', pathOf(app.id));
  t.equal(notLink.status, 400);
  t.match(notLink.json.error.details, [{ field: 'surveyId', issue: /link surveys/ }]);
  t.match((await api.manage('GET', pathOf('cnothing'))).json.error, {
    code: 404,
    details: [{ field: 'survey' }],
  });
  t.match((await api.manage('GET', pathOf(survey.id, 'cnothing'))).json.error, {
    code: 404,
    details: [{ field: 'contact' }],
  });
  const key = await api.addKey({ ws2: 'manage' });
  t.equal((await api.client('GET', pathOf(survey.id), undefined, { 'x-api-key': key })).status, 401);
  for (const days of [0, 366, 'x']) {
    t.equal((await api.manage('GET', `${pathOf(survey.id)}?expirationDays=${days}`)).status, 422);
  }
});
