/** v2 reads the caller, roles and responses. */
import t from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, startRecordedApi } from '#test/support/query-plan.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const survey = await addSurvey(api);
const contact = await findOrCreateContact(
  api.context.db,
  workspaceId,
  'u1',
  new Date(0).toISOString(),
  api.context.random,
);
const ids: string[] = [];
for (let i = 0; i < 5; i++) {
  api.advance(1000);
  const { json } = await api.client('POST', `/api/v2/client/${workspaceId}/responses`, {
    surveyId: survey.id,
    data: { q1: `answer ${i}` },
    finished: i % 2 === 0,
    contactId: contact.id,
  });
  ids.unshift(json.data.id);
}
const list = '/api/v2/management/responses';
const idsOf = (reply: { json: { data: { id: string }[] } }) => reply.json.data.map(({ id }) => id);

t.test('GET me', async (t) => {
  const key = await api.addKey({ ws2: 'read', [workspaceId]: 'manage' });
  const { json } = await api.client('GET', '/api/v2/me', undefined, { 'x-api-key': key });
  t.match(json.data, {
    workspacePermissions: [
      { permissions: 'manage', workspaceId },
      { permissions: 'read', workspaceId: 'ws2', workspaceName: 'Workspace ws2' },
    ],
    environmentPermissions: [],
    organizationId: String,
    organizationAccess: { accessControl: { read: true, write: false } },
  });
  const nothing = await api.client('GET', '/api/v2/me', undefined, { 'x-api-key': await api.addKey({}) });
  t.equal(nothing.status, 200, 'a key without workspaces is accepted');
});

t.test('200: the list, newest first, in pages, with its meta', async (t) => {
  const reply = await api.manage('GET', list);
  t.strictSame(idsOf(reply), ids);
  t.strictSame(reply.json.meta, { total: 5, limit: 50, offset: 0 });
  const page = await api.manage('GET', `${list}?limit=2&skip=1&order=asc`);
  t.strictSame(idsOf(page), ids.toReversed().slice(1, 3));
  t.strictSame(page.json.meta, { total: 5, limit: 2, offset: 1 });
  const one = reply.json.data[0];
  t.strictSame(Object.keys(one).sort(), [
    'contactAttributes',
    'contactId',
    'createdAt',
    'data',
    'displayId',
    'endingId',
    'finished',
    'id',
    'language',
    'meta',
    'singleUseId',
    'surveyId',
    'ttc',
    'updatedAt',
    'variables',
  ]);
  t.equal((await api.manage('GET', `${list}?contactId=${one.contactId}`)).json.meta.total, 5);
  t.equal((await api.manage('GET', `${list}?surveyId=unknown`)).json.meta.total, 0);
});

t.test('200: filters by date', async (t) => {
  const { json } = await api.manage('GET', list);
  const [, second, third] = json.data;
  const reply = await api.manage('GET', `${list}?startDate=${third.createdAt}&endDate=${second.createdAt}`);
  t.strictSame(idsOf(reply), [second.id, third.id]);
  const none = await api.manage('GET', `${list}?startDate=2030-01-01&filterDateField=updatedAt`);
  t.equal(none.json.meta.total, 0);
});

t.test('422: query values that make no sense', async (t) => {
  for (const query of [
    'limit=0',
    'limit=251',
    'skip=-1',
    'order=up',
    'sortBy=name',
    'startDate=soon',
    'startDate=2026-02-01&endDate=2026-01-01',
    'surveyId=A!',
  ]) {
    const reply = await api.manage('GET', `${list}?${query}`);
    t.equal(reply.status, 422, query);
    t.match(reply.json, { error: { code: 422, details: [{ field: query.split('=')[0], issue: String }] } });
  }
  t.equal((await api.manage('GET', `${list}/A!`)).status, 422);
});

t.test('one response: 200, 404, and 401 in other workspaces', async (t) => {
  const reply = await api.manage('GET', `${list}/${ids[0]}`);
  t.match(reply.json.data, { id: ids[0], data: { q1: 'answer 4' }, finished: true, contactId: String });
  const missing = await api.manage('GET', `${list}/unknown`);
  t.equal(missing.status, 404);
  t.strictSame(missing.json.error.details, [{ field: 'response', issue: 'not found' }]);
  const key = await api.addKey({ ws2: 'manage' });
  const foreign = await api.client('GET', `${list}/${ids[0]}`, undefined, { 'x-api-key': key });
  t.equal(foreign.status, 401);
  t.strictSame((await api.client('GET', list, undefined, { 'x-api-key': key })).json.data, []);
});

t.test('200: each order reads an index that has all it needs, also with a deep skip', async (t) => {
  const { api: recorded, db, queries } = await startRecordedApi(t);
  const { id: surveyId } = await addSurvey(recorded);
  for (const [query, ofRows, ofNumbers] of [
    ['sortBy=createdAt&skip=600000', 1, 1],
    ['sortBy=updatedAt&skip=600000', 1, 1],
    ['sortBy=updatedAt&order=asc&limit=1&skip=1', 1, 1],
    [`sortBy=updatedAt&surveyId=${surveyId}&skip=1`, 1, 1],
    [`sortBy=createdAt&surveyId=${surveyId}&skip=1`, 1, 1],
    ['sortBy=updatedAt&filterDateField=updatedAt&startDate=2026-01-01&skip=1', 2, 0],
  ] as const) {
    queries.length = 0;
    t.equal((await recorded.manage('GET', `${list}?${query}`)).status, 200, query);
    const ofResponses = queries.filter(({ sql }) => /from "responses"/.test(sql));
    t.equal(ofResponses.length, ofRows, `${query}: one reads the ids of the page, and one may count`);
    const ofCounts = queries.filter(({ sql }) => /"responseCounts"/.test(sql));
    t.equal(ofCounts.length, ofNumbers, query);
    for (const one of ofCounts) {
      t.notMatch((await planOf(db, one)).join('; '), /SCAN/, query);
    }
    for (const one of ofResponses) {
      const plan = (await planOf(db, one)).join('; ');
      t.match(plan, /^SEARCH responses USING COVERING INDEX/, `${query}: ${plan}`);
      t.notMatch(plan, /TEMP B-TREE/, query);
    }
  }
});
