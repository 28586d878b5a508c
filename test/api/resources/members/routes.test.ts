/** The members of an organization are listed, get other roles, and are removed. */
import t, { type Test } from 'tap';
import { apiKey, startApi, type TestApi } from '#test/support/api-app.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson, addTeam, firstOrganization } from '#test/support/people.ts';

interface World {
  readonly api: TestApi;
  readonly organizationId: string;
  readonly url: string;
  readonly owner: Browser;
  readonly ownerId: string;
}

async function begin(t: Test): Promise<World> {
  const api = await startApi(t);
  const organizationId = await firstOrganization(api);
  const owner = await logInOwner(api);
  const { id: ownerId } = (await owner.call('GET', '/api/v1/me')).json;
  return { api, organizationId, url: `/api/v1/organizations/${organizationId}/members`, owner, ownerId };
}

t.test('GET 200: members see each other with their teams; people outside and keys see nothing', async (t) => {
  const { api, url, owner, ownerId } = await begin(t);
  api.advance(1);
  const ada = await addPerson(api, 'Ada', 'member');
  await addTeam(api, 'Support', { [ada.id]: 'admin' }, {});
  const outsider = await addPerson(api, 'Outsider', null);
  t.match((await ada.browser.call('GET', url)).json.data, [
    { id: ownerId, email: 'owner@example.com', role: 'owner', isActive: true, teams: [] },
    { id: ada.id, name: 'Ada', role: 'member', teams: [{ name: 'Support', role: 'admin' }] },
  ]);
  const second = await owner.call('GET', `${url}?limit=1&skip=1`);
  t.equal(second.json.data.length, 1);
  t.notMatch(JSON.stringify(second.json), /passwordHash/);
  const stranger = await outsider.browser.call('GET', url);
  t.equal(stranger.status, 404);
  t.match(stranger.json, { message: 'Organization not found' });
  t.equal((await openBrowser(api).call('GET', url)).status, 401);
  t.equal((await api.client('GET', url, undefined, { 'x-api-key': apiKey })).status, 401);
});

t.test('PUT 200: an owner can give every role, from the next request on', async (t) => {
  const { api, url, owner } = await begin(t);
  const ada = await addPerson(api, 'Ada', 'member');
  t.equal((await ada.browser.call('GET', '/api/v1/api-keys')).status, 401);
  const changed = await owner.call('PUT', `${url}/${ada.id}`, { role: 'manager' });
  t.equal(changed.status, 200);
  t.match(changed.json.data, { id: ada.id, role: 'manager' });
  t.equal((await ada.browser.call('GET', '/api/v1/api-keys')).status, 200);
  t.equal((await owner.call('PUT', `${url}/${ada.id}`, { role: 'member' })).status, 200);
  t.equal((await ada.browser.call('GET', '/api/v1/api-keys')).status, 401);
  for (const body of [{}, { role: 'boss' }, { role: null }]) {
    t.equal((await owner.call('PUT', `${url}/${ada.id}`, body)).status, 400, JSON.stringify(body));
  }
  const missing = await owner.call('PUT', `${url}/nobody`, { role: 'member' });
  t.equal(missing.status, 404);
  t.match(missing.json, { message: 'Member not found' });
});

t.test('401: managers cannot promote or change other managers; members cannot change anybody', async (t) => {
  const { api, url, ownerId } = await begin(t);
  const manager = await addPerson(api, 'Manager', 'manager');
  const other = await addPerson(api, 'Other', 'manager');
  const member = await addPerson(api, 'Member', 'member');
  for (const [actor, target, role] of [
    [manager, manager.id, 'owner'],
    [manager, member.id, 'manager'],
    [manager, other.id, 'member'],
    [manager, ownerId, 'member'],
    [member, member.id, 'owner'],
    [member, other.id, 'member'],
  ] as const) {
    const reply = await actor.browser.call('PUT', `${url}/${target}`, { role });
    t.equal(reply.status, 401, `${actor.id} makes ${target} ${role}`);
    t.match(reply.json, { code: 'unauthorized' });
  }
  for (const [actor, target] of [
    [manager, other.id],
    [manager, ownerId],
    [member, other.id],
  ] as const) {
    t.equal((await actor.browser.call('DELETE', `${url}/${target}`)).status, 401);
  }
  t.equal(
    (await manager.browser.call('DELETE', `${url}/${member.id}`)).status,
    200,
    'members can be removed',
  );
});

t.test('DELETE 200: ends the rights of every session at once, with teams and invites', async (t) => {
  const { api, organizationId, url, owner } = await begin(t);
  const ada = await addPerson(api, 'Ada', 'manager');
  const elsewhere = openBrowser(api);
  await elsewhere.logIn(ada.email, 'Password1');
  await addTeam(api, 'Support', { [ada.id]: 'admin' }, { ws1: 'manage' });
  const made = await ada.browser.call('POST', '/api/v1/api-keys', { label: 'Ada’s' });
  await ada.browser.call('POST', `/api/v1/organizations/${organizationId}/invites`, {
    email: 'friend@example.com',
  });
  for (const browser of [ada.browser, elsewhere]) {
    t.equal((await browser.call('GET', '/api/v1/management/responses')).status, 200);
  }
  const removed = await owner.call('DELETE', `${url}/${ada.id}`);
  t.equal(removed.status, 200);
  t.match(removed.json, { data: { id: ada.id }, meta: { apiKeyIds: [made.json.data.id] } });
  for (const browser of [ada.browser, elsewhere]) {
    t.equal((await browser.call('GET', '/api/v1/management/responses')).status, 401);
    t.equal((await browser.call('GET', '/api/v1/api-keys')).status, 401);
    t.equal((await browser.call('GET', url)).status, 404);
    t.same((await browser.call('GET', '/api/v1/organizations')).json, { data: [] });
  }
  t.equal((await ada.browser.call('GET', '/api/v1/me')).status, 200, 'the account itself stays');
  for (const table of ['teamMembers', 'invites'] as const) {
    t.same(await api.context.db.selectFrom(table).selectAll().execute(), [], table);
  }
  t.equal((await owner.call('DELETE', `${url}/${ada.id}`)).status, 404);
});

t.test('every member may leave', async (t) => {
  const { api, url } = await begin(t);
  const ada = await addPerson(api, 'Ada', 'member');
  t.equal((await ada.browser.call('DELETE', `${url}/${ada.id}`)).status, 200);
  t.equal((await ada.browser.call('GET', url)).status, 404);
});

t.test('409: the last owner must stay owner, also with two concurrent calls', async (t) => {
  const { api, url, owner, ownerId } = await begin(t);
  for (const [method, body] of [
    ['DELETE', undefined],
    ['PUT', { role: 'member' }],
  ] as const) {
    const reply = await owner.call(method, `${url}/${ownerId}`, body);
    t.equal(reply.status, 409, method);
    t.match(reply.json, { code: 'conflict', message: /make somebody else an owner first/ });
  }
  t.equal((await owner.call('PUT', `${url}/${ownerId}`, { role: 'owner' })).status, 200, 'the same role');
  const ada = await addPerson(api, 'Ada', 'owner');
  const replies = await Promise.all([
    owner.call('DELETE', `${url}/${ownerId}`),
    ada.browser.call('PUT', `${url}/${ada.id}`, { role: 'manager' }),
  ]);
  t.strictSame(replies.map(({ status }) => status).sort(), [200, 409]);
  const owners = await api.context.db
    .selectFrom('memberships')
    .select('userId')
    .where('role', '=', 'owner')
    .execute();
  t.equal(owners.length, 1);
});

t.test('the invites of a member end with the role', async (t) => {
  const { api, organizationId, url, owner } = await begin(t);
  const ada = await addPerson(api, 'Ada', 'owner');
  const invites = `/api/v1/organizations/${organizationId}/invites`;
  await ada.browser.call('POST', invites, { email: 'friend@example.com', role: 'owner' });
  t.equal((await owner.call('GET', invites)).json.data.length, 1);
  await owner.call('PUT', `${url}/${ada.id}`, { role: 'manager' });
  t.same((await owner.call('GET', invites)).json.data, []);
});
