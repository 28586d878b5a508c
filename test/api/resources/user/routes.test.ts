/** What an identification costs, and how many keys it makes. The replies are in test/conversations/user.md. */
import { pino } from 'pino';
import t from 'tap';
import { buildApp } from '#api/app.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = `/api/v1/client/${workspaceId}/user`;

t.test('the number of queries does not depend on the number of rows', async (t) => {
  const survey = await addSurvey(api, { type: 'app' });
  const count = async (body: unknown): Promise<number> => {
    const queries = await queriesOf(db, async (on) => {
      const app = await buildApp({ ...api.context, db: on }, pino({ level: 'silent' }));
      const reply = await app.inject({ method: 'POST', url: path, payload: JSON.stringify(body) });
      t.equal(reply.statusCode, 200, reply.body);
      await app.close();
    });
    return queries.length;
  };
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`many_${i}`, 'x']));
  const fresh = await count({ userId: 'q1', attributes: { one: '1' } });
  t.equal(await count({ userId: 'q2', attributes: many }), fresh, 'as many queries for sixty as for one');
  // Two of them are locks, which SQLite does not need.
  t.ok(fresh <= 18, `${fresh} queries`);
  const known = await count({ userId: 'q2' });
  t.equal(await count({ userId: 'q2', attributes: many }), known, 'unchanged attributes need no query');
  t.ok(known <= 7, `${known} queries for a known user`);
  const { contactId } = (await api.client('POST', path, { userId: 'q2' })).json.data.state.data;
  const at = new Date(clock()).toISOString();
  for (let i = 0; i < 40; i += 1) {
    const row = { id: newId(random), surveyId: survey.id, contactId, createdAt: at, updatedAt: at };
    await db.insertInto('displays').values(row).execute();
    await addSurvey(api, { type: 'app' });
  }
  t.equal(await count({ userId: 'q2' }), known, 'displays and segments need no query');
});

t.test('200: creates no keys beyond 150, and reports it', async (t) => {
  const fresh = await startApi(t);
  const attributes = Object.fromEntries(Array.from({ length: 210 }, (_, i) => [`key_${i}`, i]));
  const reply = await fresh.client('POST', path, {
    userId: 'greedy',
    attributes: { ...attributes, firstName: 'G' },
  });
  t.equal(reply.status, 200);
  const { errors } = reply.json.data;
  t.equal(
    errors[0],
    'The attribute "key_145" was not stored: the workspace has 150 attribute keys, which is the maximum',
  );
  t.equal(errors.length, 50);
  const keys = (await fresh.manage('GET', '/api/v1/management/contact-attribute-keys')).json.data;
  t.equal(keys.length, 150);
  const [person] = (await fresh.manage('GET', '/api/v1/management/people')).json.data;
  t.match(person.attributes, { firstName: 'G', key_144: '144' }, 'known keys still accept values');
});
