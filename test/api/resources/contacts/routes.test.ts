import t from 'tap';
import { contacts, findOrCreateContact, isIdentified } from '#api/resources/contacts/store.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { isOnPostgres } from '#test/support/database.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const path = '/api/v1/management/contacts';
await api.addWorkspace('ws2', 'env2');
const both = await api.addKey({ [workspaceId]: 'manage', ws2: 'read' });

const now = (): string => new Date(clock()).toISOString();
const addContact = async (userId: string, workspace = workspaceId) => {
  api.advance(1);
  return findOrCreateContact(db, workspace, userId, now(), random);
};
const askBoth = (method: 'GET' | 'DELETE', url: string) =>
  api.client(method, url, undefined, { 'x-api-key': both });

t.test('GET list 200: every contact that the key can access, by workspace, oldest first', async (t) => {
  t.strictSame((await api.manage('GET', path)).json, { data: [] });
  const foreign = await addContact('f', 'ws2');
  const first = await addContact('u1');
  const second = await addContact('u2');
  const anonymous = { ...second, id: newId(random), userId: null, createdAt: second.createdAt };
  await db.insertInto('contacts').values(anonymous).execute();
  const own = await api.manage('GET', path);
  t.strictSame(own.json.data[0], {
    id: first.id,
    environmentId: workspaceId,
    workspaceId,
    userId: 'u1',
    createdAt: first.createdAt,
    updatedAt: first.updatedAt,
  });
  const idsOf = (data: readonly { id: string }[]): string[] => data.map(({ id }) => id);
  const ordered = [first.id, ...[second.id, anonymous.id].sort()];
  t.strictSame(idsOf(own.json.data), ordered, 'contacts of the same time are ordered by id');
  const all = (await askBoth('GET', path)).json.data;
  t.strictSame(idsOf(all), [...ordered, foreign.id]);
  t.match(all[3], { workspaceId: 'ws2', environmentId: 'env2' });
  t.strictSame(
    idsOf((await askBoth('GET', `${path}?limit=2&skip=1`)).json.data),
    [...ordered, foreign.id].slice(1, 3),
  );
  t.equal((await api.manage('GET', `${path}?limit=99999999`)).json.data.length, 3, 'the limit is reduced');
});

t.test('GET list 400: invalid page parameters', async (t) => {
  for (const query of ['limit=0', 'limit=x', 'skip=-1', 'skip=x', 'skip=99999999999']) {
    const reply = await api.manage('GET', `${path}?${query}`);
    t.equal(reply.status, 400, query);
    t.equal(reply.json.code, 'bad_request');
  }
});

t.test('GET 200, 404 and 401', async (t) => {
  const contact = await addContact('u3');
  t.match((await api.manage('GET', `${path}/${contact.id}`)).json, {
    data: { id: contact.id, userId: 'u3' },
  });
  for (const id of ['cnothing', 'Not-An-Id']) {
    const reply = await api.manage('GET', `${path}/${id}`);
    t.equal(reply.status, 404, id);
    t.match(reply.json, {
      code: 'not_found',
      message: 'Contact not found',
      details: { resource_type: 'Contact' },
    });
  }
  const foreign = await addContact('f2', 'ws2');
  t.equal((await api.manage('GET', `${path}/${foreign.id}`)).status, 401);
  t.equal((await askBoth('DELETE', `${path}/${foreign.id}`)).status, 401, 'access to read is too little');
  t.equal((await api.client('GET', path)).status, 401);
});

t.test('DELETE 200: its responses stay without it', async (t) => {
  const contact = await addContact('leaver');
  const survey = await addSurvey(api);
  const client = `/api/v1/client/${workspaceId}`;
  const display = await api.client('POST', `${client}/displays`, { surveyId: survey.id, userId: 'leaver' });
  const response = await api.client('POST', `${client}/responses`, {
    surveyId: survey.id,
    userId: 'leaver',
    displayId: display.json.data.id,
    finished: false,
    data: {},
  });
  const reply = await api.manage('DELETE', `${path}/${contact.id}`, { ignored: true });
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { data: { success: 'Contact deleted successfully' } });
  t.equal((await api.manage('GET', `${path}/${contact.id}`)).status, 404);
  t.equal((await api.manage('DELETE', `${path}/${contact.id}`)).status, 404, 'a second deletion gets 404');
  const kept = await api.manage('GET', `/api/v1/management/responses/${response.json.data.id}`);
  t.match(kept.json.data, { contact: null, displayId: null, contactAttributes: null });
});

t.test('lists read their index in order, with any number of workspaces', async (t) => {
  for (const only of [undefined, isIdentified]) {
    for (const workspaces of [['ws1'], ['ws1', 'ws2', 'ws3']]) {
      const [query] = await queriesOf(db, (on) => contacts.list(on, workspaces, { limit: 5, skip: 5 }, only));
      if (query === undefined) return t.fail('the request ran no query');
      const plan = await planOf(db, query);
      // Up to version 16, PostgreSQL sorts the rows that it finds under several values of an index.
      const maySort = isOnPostgres && workspaces.length > 1;
      t.strictSame(
        plan.filter((step) => !maySort || step !== 'USE TEMP B-TREE FOR ORDER BY'),
        ['SEARCH contacts USING INDEX contacts_list (workspaceId=?)'],
      );
    }
  }
});

t.test('401: a read-only key cannot delete', async (t) => {
  const reader = await api.addKey({ [workspaceId]: 'write' });
  const contact = await addContact('kept');
  const reply = await api.client('DELETE', `${path}/${contact.id}`, undefined, { 'x-api-key': reader });
  t.equal(reply.status, 401);
  t.equal(reply.json.code, 'unauthorized');
  const known = await api.client('GET', `${path}/${contact.id}`, undefined, {
    authorization: `Bearer ${apiKey}`,
  });
  t.equal(known.status, 200);
});
