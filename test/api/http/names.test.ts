/** Keys of a body that are also members of every JavaScript object are data like all others. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const names = ['constructor', 'prototype', 'toString', 'hasOwnProperty'] as const;
const api = await startApi(t);
const values = Object.fromEntries(names.map((name) => [name, 'x']));

t.test('hidden ids, variables and times', async (t) => {
  const survey = await addSurvey(api);
  const times = Object.fromEntries(names.map((name) => [name, 1]));
  const body = { surveyId: survey.id, finished: false, data: values, variables: values, ttc: times };
  const path = '/api/v1/management/responses';
  const { json, status } = await api.manage('POST', path, body);
  t.equal(status, 200, JSON.stringify(json));
  t.strictSame(json.data.data, values);
  t.strictSame(json.data.variables, values);
  t.match(json.data.ttc, times);
  const change = { data: { constructor: 'y' } };
  const changed = await api.manage('PUT', `${path}/${json.data.id}`, change);
  t.strictSame(changed.json.data.data, { ...values, ...change.data });
});

t.test('attributes of a contact', async (t) => {
  const attributes = { constructor: 'x', prototype: 'y' };
  const path = `/api/v1/client/${workspaceId}/user`;
  const user = { userId: 'u1', attributes };
  t.match(await api.client('POST', path, user), { status: 200 });
  t.match(await api.client('POST', path, user), { status: 200 }, 'again, when the keys exist');
  const { json } = await api.manage('GET', '/api/v1/management/people');
  t.match(json.data[0].attributes, attributes);
});

t.test('an attribute class may have any name', async (t) => {
  const path = '/api/v1/management/attribute-classes';
  const made = await api.manage('POST', path, { workspaceId, name: '__proto__', type: 'code' });
  t.equal(made.status, 200);
  const { db } = api.context;
  const contact = await db.selectFrom('contacts').selectAll().executeTakeFirstOrThrow();
  await db
    .insertInto('contactAttributes')
    .values({
      id: 'proto',
      contactId: contact.id,
      attributeKeyId: made.json.data.id,
      value: 'kept',
      createdAt: contact.createdAt,
      updatedAt: contact.createdAt,
    })
    .execute();
  const { text } = await api.manage('GET', '/api/v1/management/people');
  t.match(text, '"__proto__":"kept"');
});

t.test('fields that a route does not know', async (t) => {
  const questions = [{ id: 'q1', type: 'openText', headline: 'What?', ...values }];
  const survey = { workspaceId, name: 'S', type: 'link', questions, ...values };
  const ignored = await api.manage('POST', '/api/v1/management/surveys', survey);
  t.equal(ignored.status, 200, ignored.text);
  const { status, json } = await api.manage(
    'GET',
    `/api/v3/surveys?workspaceId=${workspaceId}&constructor=1`,
  );
  t.equal(status, 400, 'v3 refuses them');
  t.match(JSON.stringify(json), 'constructor');
  const query = await api.manage('GET', `/api/v2/management/webhooks?constructor=1&limit=1`);
  t.equal(query.status, 200, 'in a query');
});
