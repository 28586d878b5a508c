import t from 'tap';
import { attributesOf, findOrCreateContact } from '#api/resources/contacts/store.ts';
import { newId } from '#api/values/ids.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = '/api/v1/management/people';
const now = new Date(clock()).toISOString();
await api.addWorkspace('ws2');
const ann = await findOrCreateContact(db, workspaceId, 'ann', now, random);
const stranger = { id: newId(random), workspaceId, userId: null, createdAt: now, updatedAt: now };
await db.insertInto('contacts').values(stranger).execute();
const foreign = await findOrCreateContact(db, 'ws2', 'fay', now, random);

const person = {
  id: ann.id,
  userId: 'ann',
  environmentId: workspaceId,
  workspaceId,
  attributes: { userId: 'ann' },
  createdAt: now,
  updatedAt: now,
};

t.test('GET list 200: only contacts with a user id, with their attributes', async (t) => {
  const reply = await api.manage('GET', path);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { data: [person] });
  t.strictSame((await api.manage('GET', `${path}?skip=1`)).json, { data: [] });
});

t.test('GET 200: one person', async (t) => {
  t.strictSame((await api.manage('GET', `${path}/${ann.id}`)).json, { data: person });
});

t.test('404: unknown people, and contacts without a user id; 401: people of other workspaces', async (t) => {
  for (const id of ['cnothing', stranger.id, 'A']) {
    for (const method of ['GET', 'DELETE'] as const) {
      const reply = await api.manage(method, `${path}/${id}`);
      t.equal(reply.status, 404);
      t.strictSame(reply.json.details, { resource_id: id, resource_type: 'Person' });
    }
  }
  t.equal((await api.manage('DELETE', `${path}/${foreign.id}`)).status, 401);
});

t.test('DELETE 200: deletes the contact too', async (t) => {
  const leaver = await findOrCreateContact(db, workspaceId, 'leaver', now, random);
  const reply = await api.manage('DELETE', `${path}/${leaver.id}`);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { data: { success: 'Person deleted successfully' } });
  t.equal((await api.manage('GET', `/api/v1/management/contacts/${leaver.id}`)).status, 404);
});

t.test('one query on indexes reads the attributes of many people', async (t) => {
  const queries = await queriesOf(db, (on) => attributesOf(on, [ann.id, foreign.id]));
  t.equal(queries.length, 1);
  for (const query of queries) {
    const plan = await planOf(db, query);
    t.notMatch(plan.join('; '), /SCAN/);
  }
});
