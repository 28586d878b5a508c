/** The users of an organization, on v2. */
import t from 'tap';
import { apiKey, startApi } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';
import { addPerson, addTeam, firstOrganization, widenFirstKey } from '#test/support/people.ts';

const api = await startApi(t);
await widenFirstKey(api);
const { db } = api.context;
const organizationId = await firstOrganization(api);
const url = `/api/v2/organizations/${organizationId}/users`;
const mia = await addPerson(api, 'Mia', 'member');
const max = await addPerson(api, 'Max', 'manager');
const stranger = await addPerson(api, 'Sue', null);
await addTeam(api, 'Sales', { [mia.id]: 'admin' }, {});
await addTeam(api, 'Support', {}, {});
const patch = (body: object) => api.manage('PATCH', url, body);
/** Sets the creator of a key. */
const keyOf = (userId: string | null) => db.updateTable('apiKeys').set({ createdBy: userId }).execute();
const owner = await db
  .selectFrom('users')
  .select('id')
  .where('email', '=', 'owner@example.com')
  .executeTakeFirstOrThrow();

t.test('GET 200: the members, filtered by id and address', async (t) => {
  const { status, json } = await api.manage('GET', url);
  t.equal(status, 200);
  t.strictSame(json.meta, { total: 3, limit: 50, offset: 0 });
  const one = json.data.find(({ id }: { id: string }) => id === mia.id);
  t.match(one, {
    email: mia.email,
    name: 'Mia',
    role: 'member',
    isActive: true,
    teams: ['Sales'],
    lastLoginAt: String,
  });
  t.strictSame(Object.keys(one).sort(), [
    ...['createdAt', 'email', 'id', 'isActive', 'lastLoginAt', 'name', 'role', 'teams', 'updatedAt'],
  ]);
  t.match((await api.manage('GET', `${url}?email=MIA@example.com`)).json, {
    data: [{ id: mia.id }],
    meta: { total: 1 },
  });
  t.match((await api.manage('GET', `${url}?id=${max.id}`)).json, {
    data: [{ role: 'manager' }],
    meta: { total: 1 },
  });
  t.strictSame((await api.manage('GET', `${url}?id=${stranger.id}`)).json.data, []);
  t.equal((await api.manage('GET', `${url}?id=No-Id`)).status, 422);
  t.equal((await api.client('GET', url, undefined, { 'x-api-key': 'fbk_nobody' })).status, 401);
});

t.test('PATCH 200: changes name, role and teams; absent fields stay', async (t) => {
  const changed = await patch({
    email: ' MIA@example.com',
    name: 'Mia Two',
    role: 'manager',
    teams: ['Support'],
  });
  t.match(changed, {
    status: 200,
    json: { data: { name: 'Mia Two', role: 'manager', teams: ['Support'], isActive: true } },
  });
  t.match((await patch({ email: mia.email, teams: ['Sales', 'Support'] })).json, {
    data: { teams: ['Sales', 'Support'], role: 'manager' },
  });
  t.match((await patch({ email: mia.email, role: 'member' })).json, {
    data: { role: 'member', name: 'Mia Two' },
  });
  t.match((await patch({ email: mia.email })).json, { data: { role: 'member' } });
});

t.test('PATCH 200: a deactivated user is logged out at once, and can log in when reactivated', async (t) => {
  t.equal((await mia.browser.call('GET', `/api/v1/organizations`)).status, 200);
  t.match((await patch({ email: mia.email, isActive: false })).json, { data: { isActive: false } });
  t.equal((await mia.browser.call('GET', `/api/v1/organizations`)).status, 401);
  t.match(await mia.browser.logIn(mia.email, 'Password1'), {
    status: 401,
    json: { url: /inactive/ },
  });
  t.match((await patch({ email: mia.email, isActive: true })).json, { data: { isActive: true } });
  t.equal((await mia.browser.call('GET', `/api/v1/organizations`)).status, 401, 'old sessions stay ended');
});

t.test('PATCH 403: a key cannot do more than its creator', async (t) => {
  t.teardown(() => keyOf(owner.id));
  await keyOf(max.id);
  t.equal((await patch({ email: mia.email, name: 'Mia' })).status, 200, 'a manager may change members');
  t.equal((await patch({ email: mia.email, role: 'owner' })).status, 403);
  t.equal((await patch({ email: mia.email, role: 'manager' })).status, 403);
  t.equal((await patch({ email: 'owner@example.com', role: 'member' })).status, 403);
  for (const userId of [mia.id, stranger.id, null]) {
    await keyOf(userId);
    t.equal((await patch({ email: mia.email, name: 'Eve' })).status, 403, 'it cannot change others');
  }
});

t.test('PATCH 403: name and isActive of a user who belongs to other organizations too', async (t) => {
  const now = new Date(api.context.clock()).toISOString();
  await db
    .insertInto('organizations')
    .values({ id: 'other', createdAt: now, updatedAt: now, name: 'Other', isOperators: 0 })
    .execute();
  await db
    .insertInto('memberships')
    .values({ organizationId: 'other', userId: max.id, role: 'member', createdAt: now })
    .execute();
  for (const change of [{ name: 'X' }, { isActive: false }]) {
    t.equal((await patch({ email: max.email, ...change })).status, 403);
  }
  t.equal((await patch({ email: max.email, role: 'member' })).status, 200);
});

t.test('PATCH 409: the last owner must stay', async (t) => {
  for (const change of [{ role: 'member' }, { isActive: false }]) {
    t.equal((await patch({ email: 'owner@example.com', ...change })).status, 409);
  }
});

t.test('PATCH 403: a key whose creator is deactivated', async (t) => {
  t.teardown(() => keyOf(owner.id));
  const olga = await addPerson(api, 'Olga', 'owner');
  t.equal((await patch({ email: olga.email, isActive: false })).status, 200);
  await keyOf(olga.id);
  for (const change of [
    { email: olga.email, isActive: true },
    { email: mia.email, role: 'owner' },
  ])
    t.equal((await patch(change)).status, 403, JSON.stringify(change));
});

t.test('PATCH 200: deactivating a user ends their invites', async (t) => {
  const otto = await addPerson(api, 'Otto', 'owner');
  const invites = `/api/v1/organizations/${organizationId}/invites`;
  const invite = { email: 'otto-too@example.com', name: 'Otto', role: 'owner' };
  t.equal((await otto.browser.call('POST', invites, invite)).status, 200);
  t.equal((await patch({ email: otto.email, isActive: false })).status, 200);
  t.strictSame(await db.selectFrom('invites').select('email').execute(), []);
});

t.test('409: a deactivated owner does not count as owner', async (t) => {
  for (const change of [{ role: 'member' }, { isActive: false }])
    t.equal((await patch({ email: 'owner@example.com', ...change })).status, 409, JSON.stringify(change));
  const browser = await logInOwner(api);
  const member = `/api/v1/organizations/${organizationId}/members/${owner.id}`;
  t.equal((await browser.call('PUT', member, { role: 'member' })).status, 409);
  t.equal((await browser.call('DELETE', member)).status, 409);
  t.match((await patch({ email: 'olga@example.com', role: 'member' })).json, { data: { role: 'member' } });
});

t.test('PATCH 404, 400 and 422', async (t) => {
  for (const email of ['nobody@example.com', stranger.email])
    t.equal((await patch({ email, name: 'X' })).status, 404);
  t.match(await patch({ email: mia.email, teams: ['None'] }), {
    status: 400,
    json: { error: { details: [{ field: 'teams' }] } },
  });
  for (const body of [
    {},
    { email: 'x' },
    { email: 1 },
    { email: mia.email, role: 'admin' },
    { email: mia.email, isActive: 'no' },
    { email: mia.email, teams: 'Sales' },
    { email: mia.email, name: '<b>' },
  ]) {
    t.equal((await patch(body)).status, 422, JSON.stringify(body));
  }
  t.equal((await api.client('PATCH', url, { email: mia.email })).status, 401);
  t.equal((await api.client('POST', url, {}, { 'x-api-key': apiKey })).status, 405, 'people join by invite');
});
