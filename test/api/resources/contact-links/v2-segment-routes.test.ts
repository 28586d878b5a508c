/** Personal links for all contacts of a segment. */
import t from 'tap';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const v2 = '/api/v2/management';
const survey = await addSurvey(api, { type: 'link' });
const COUNT = 230;
const rows = Array.from({ length: COUNT }, (_, i) => ({
  attributes: Object.entries({
    email: `c${i}@example.com`,
    userId: `u${i}`,
    plan: i % 2 === 0 ? 'pro' : 'free',
  }).map(([key, value]) => ({ attributeKey: { key, name: key }, value })),
}));
await api.manage('PUT', `${v2}/contacts/bulk`, { workspaceId, contacts: rows });

const segment = async (filters: unknown[], title: string): Promise<string> => {
  const reply = await api.manage('POST', '/api/v1/management/segments', { workspaceId, title, filters });
  if (reply.status !== 200) throw new Error(reply.text);
  return reply.json.data.id;
};
const filter = (root: object, operator: string, value: unknown) => ({
  id: 'f1',
  connector: null,
  resource: { id: 'r1', root, value, qualifier: { operator } },
});
const isPro = filter({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', 'pro');
const everybody = await segment([], 'Everybody');
const pros = await segment([isPro], 'Pros');
const others = await segment([filter({ type: 'segment', segmentId: pros }, 'userIsNotIn', pros)], 'Others');
const linksTo = (segmentId: string, query = '', surveyId: string = survey.id) =>
  api.manage('GET', `${v2}/surveys/${surveyId}/contact-links/segments/${segmentId}${query}`);

t.test('200: a link for each contact of the segment, oldest first, in pages', async (t) => {
  const first = await linksTo(pros, '?limit=100&attributeKeys=email, plan,unknown');
  t.equal(first.status, 200);
  t.strictSame(first.json.meta, { total: COUNT / 2, limit: 100, offset: 0 });
  t.equal(first.json.data.length, 100);
  const [one] = first.json.data;
  t.match(one, {
    contactId: String,
    expiresAt: null,
    attributes: { plan: 'pro', email: /^c\d+@example.com$/ },
  });
  t.strictSame(Object.keys(one.attributes).sort(), ['email', 'plan']);
  t.ok(one.surveyUrl.startsWith(`${publicUrl}/s/${survey.id}?contactToken=${one.contactId}`));
  const second = await linksTo(pros, '?limit=100&skip=100');
  t.equal(second.json.data.length, COUNT / 2 - 100);
  t.strictSame(second.json.data[0].attributes, {}, 'attributes were not requested');
  const ids = [...first.json.data, ...second.json.data].map(({ contactId }) => contactId);
  t.equal(new Set(ids).size, COUNT / 2, 'each contact is on one page only');
});

t.test('200: a segment without filters has all contacts; a segment may depend on another', async (t) => {
  t.equal((await linksTo(everybody)).json.meta.total, COUNT);
  t.equal((await linksTo(everybody, '?limit=250&skip=200')).json.data.length, COUNT - 200);
  const { json } = await linksTo(others, '?attributeKeys=plan&limit=1');
  t.equal(json.meta.total, COUNT / 2);
  t.equal(json.data[0].attributes.plan, 'free');
});

t.test('200: links expire, and a segment can depend on past answers', async (t) => {
  const { json } = await linksTo(pros, '?limit=1&expirationDays=1');
  const [{ surveyUrl, contactId, expiresAt }] = json.data;
  t.equal(Date.parse(expiresAt), Math.ceil((api.context.clock() + 86_400_000) / 1000) * 1000);
  const answer = { surveyId: survey.id, finished: true, data: { q1: 'x' }, meta: { url: surveyUrl } };
  t.equal((await api.client('POST', `/api/v1/client/${workspaceId}/responses`, answer)).status, 200);
  const value = { surveyScope: 'any' };
  const answered = await segment([filter({ type: 'surveyInteraction' }, 'haveCompleted', value)], 'Answered');
  t.match((await linksTo(answered)).json, { data: [{ contactId }], meta: { total: 1 } });
});

t.test('a filter on the device matches neither phone nor desktop', async (t) => {
  for (const device of ['phone', 'desktop']) {
    const id = await segment([filter({ type: 'device', deviceType: device }, 'equals', device)], device);
    t.equal((await linksTo(id)).json.meta.total, 0);
  }
});

t.test('404, 400, 422 and 401', async (t) => {
  t.match(await linksTo('c0000000000000000000000000'), {
    status: 404,
    json: { error: { details: [{ field: 'segment' }] } },
  });
  t.match(await linksTo(pros, '', 'c0000000000000000000000000'), {
    status: 404,
    json: { error: { details: [{ field: 'survey' }] } },
  });
  const app = await addSurvey(api, { type: 'app' });
  t.equal((await linksTo(pros, '', app.id)).status, 400, 'an app survey has no links');
  const many = Array.from({ length: 21 }, (_, i) => `k${i}`).join();
  for (const query of [
    '?limit=0',
    '?limit=251',
    '?skip=-1',
    '?expirationDays=366',
    `?attributeKeys=${many}`,
  ]) {
    t.equal((await linksTo(pros, query)).status, 422, query);
  }
  const foreign = await api.addKey({ ws2: 'manage' });
  const url = `${v2}/surveys/${survey.id}/contact-links/segments/${pros}`;
  t.equal((await api.client('GET', url, undefined, { 'x-api-key': foreign })).status, 401);
  t.equal((await api.client('GET', url)).status, 401);
});

t.test('a segment of another workspace is not found', async (t) => {
  await api.context.db.updateTable('segments').set({ workspaceId: 'ws2' }).where('id', '=', others).execute();
  t.equal((await linksTo(others)).status, 404);
});
