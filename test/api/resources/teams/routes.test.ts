/** Teams have members and give them rights. */
import t, { type Test } from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { type Browser, logInOwner } from '#test/support/login.ts';
import { addPerson, firstOrganization, type Person } from '#test/support/people.ts';

interface World {
  readonly api: TestApi;
  readonly url: string;
  readonly owner: Browser;
  readonly ada: Person;
  readonly ben: Person;
}

async function begin(t: Test): Promise<World> {
  const api = await startApi(t);
  await api.addWorkspace('ws2', 'env2');
  return {
    api,
    url: `/api/v1/organizations/${await firstOrganization(api)}/teams`,
    owner: await logInOwner(api),
    ada: await addPerson(api, 'Ada', 'member'),
    ben: await addPerson(api, 'Ben', 'member'),
  };
}

async function make({ owner, url }: World, name: string): Promise<string> {
  return `${url}/${(await owner.call('POST', url, { name })).json.data.id}`;
}

t.test('members have the rights of a team as long as the team has them', async (t) => {
  const world = await begin(t);
  const { owner, ada } = world;
  const responses = '/api/v1/management/responses';
  const team = await make(world, ' Support ');
  t.match((await owner.call('GET', team)).json.data, { name: 'Support', members: [], workspaces: [] });
  t.equal((await ada.browser.call('GET', responses)).status, 401);
  t.match((await owner.call('PUT', `${team}/members/${ada.id}`, { role: 'contributor' })).json.data, {
    members: [{ userId: ada.id, email: ada.email, role: 'contributor' }],
  });
  t.equal((await ada.browser.call('GET', responses)).status, 401, 'the team has no rights yet');
  t.match((await owner.call('PUT', `${team}/workspaces/env2`, { permission: 'read' })).json.data, {
    workspaces: [{ workspaceId: 'ws2', permission: 'read' }],
  });
  t.equal((await ada.browser.call('GET', responses)).status, 200);
  const create = () =>
    ada.browser.call('POST', '/api/v1/management/languages', { workspaceId: 'ws2', code: 'de' });
  t.equal((await create()).status, 401);
  await owner.call('PUT', `${team}/workspaces/ws2`, { permission: 'readWrite' });
  t.equal((await create()).status, 200);
  t.match((await owner.call('GET', team)).json.data.workspaces, [{ permission: 'readWrite' }]);
  for (const path of [`${team}/workspaces/ws2`, `${team}/members/${ada.id}`]) {
    t.equal((await owner.call('DELETE', path)).status, 200);
    t.equal((await ada.browser.call('GET', responses)).status, 401);
    t.equal((await owner.call('DELETE', path)).status, 404, 'a second deletion gets 404');
  }
});

t.test('deleting a team removes the rights that it gave', async (t) => {
  const world = await begin(t);
  const { api, owner, ada } = world;
  const team = await make(world, 'Support');
  await owner.call('PUT', `${team}/members/${ada.id}`, { role: 'admin' });
  await owner.call('PUT', `${team}/workspaces/ws1`, { permission: 'manage' });
  t.equal((await ada.browser.call('GET', '/api/v1/management/responses')).status, 200);
  t.equal((await owner.call('DELETE', team)).status, 200);
  t.equal((await ada.browser.call('GET', '/api/v1/management/responses')).status, 401);
  for (const table of ['teams', 'teamMembers', 'teamWorkspaces'] as const) {
    t.same(await api.context.db.selectFrom(table).selectAll().execute(), []);
  }
});

t.test('owners and managers change teams; members see theirs, and its admins add members', async (t) => {
  const world = await begin(t);
  const { api, url, owner, ada, ben } = world;
  const support = await make(world, 'Support');
  const sales = await make(world, 'Sales');
  await owner.call('PUT', `${support}/members/${ada.id}`, { role: 'admin' });
  t.match((await owner.call('GET', url)).json.data, [{ name: 'Sales' }, { name: 'Support' }]);
  t.match((await ada.browser.call('GET', url)).json.data, [{ name: 'Support' }]);
  t.same((await ben.browser.call('GET', url)).json.data, []);
  t.equal((await ada.browser.call('GET', support)).status, 200);
  t.equal((await ada.browser.call('GET', sales)).status, 401);

  t.equal(
    (await ada.browser.call('PUT', `${support}/members/${ben.id}`, { role: 'contributor' })).status,
    200,
  );
  t.equal((await ada.browser.call('PUT', `${sales}/members/${ada.id}`, { role: 'admin' })).status, 401);
  t.equal((await ada.browser.call('PUT', `${support}/workspaces/ws1`, { permission: 'manage' })).status, 401);
  for (const [method, path, body] of [
    ['POST', url, { name: 'Mine' }],
    ['PUT', support, { name: 'Mine' }],
    ['DELETE', support, undefined],
  ] as const) {
    t.equal((await ada.browser.call(method, path, body)).status, 401, `as an admin of the team: ${method}`);
  }
  t.equal((await ben.browser.call('PUT', `${support}/members/${ben.id}`, { role: 'admin' })).status, 401);
  t.equal((await ben.browser.call('DELETE', `${support}/members/${ada.id}`)).status, 401);
  t.equal(
    (await ben.browser.call('DELETE', `${support}/members/${ben.id}`)).status,
    200,
    'every member may leave',
  );

  const outsider = await addPerson(api, 'Outsider', null);
  t.equal((await outsider.browser.call('GET', url)).status, 404);
  const reply = await owner.call('PUT', `${support}/members/${outsider.id}`, { role: 'contributor' });
  t.equal(reply.status, 404, 'only members of the organization can join');
  t.match(reply.json, { message: 'Member not found' });
});

t.test('400, 404, 409: missing and taken names, and unknown teams', async (t) => {
  const world = await begin(t);
  const { api, url, owner } = world;
  const team = await make(world, 'Support');
  await make(world, 'Sales');
  for (const name of ['', ' ', 'x'.repeat(256), 'a\nb', 7]) {
    t.equal((await owner.call('POST', url, { name })).status, 400, JSON.stringify(name).slice(0, 20));
  }
  t.equal((await owner.call('POST', url, { name: 'Support' })).status, 409);
  const taken = await owner.call('PUT', team, { name: 'Sales' });
  t.equal(taken.status, 409);
  t.match(taken.json, { message: 'A team with the name Sales already exists' });
  t.equal((await owner.call('PUT', team, { name: 'Support' })).status, 200);
  const both = await Promise.all([
    owner.call('POST', url, { name: 'Same' }),
    owner.call('POST', url, { name: 'Same' }),
  ]);
  t.strictSame(both.map(({ status }) => status).sort(), [200, 409]);
  t.equal((await owner.call('GET', `${url}/none`)).status, 404);
  t.equal((await owner.call('PUT', `${team}/workspaces/none`, { permission: 'read' })).status, 404);
  t.equal((await owner.call('PUT', `${team}/workspaces/ws1`, { permission: 'write' })).status, 400);
  await api.context.db
    .insertInto('organizations')
    .values({ id: 'foreign', name: 'F', isOperators: 0, createdAt: '', updatedAt: '' })
    .execute();
  await api.context.db
    .updateTable('workspaces')
    .set({ organizationId: 'foreign' })
    .where('id', '=', 'ws2')
    .execute();
  t.equal(
    (await owner.call('PUT', `${team}/workspaces/ws2`, { permission: 'read' })).status,
    404,
    'a workspace of another organization',
  );
});

t.test('403: at most 200 teams', async (t) => {
  const { api, url, owner } = await begin(t);
  const organizationId = await firstOrganization(api);
  const row = { organizationId, createdAt: '', updatedAt: '' };
  for (let i = 0; i < 200; i += 1) {
    await api.context.db
      .insertInto('teams')
      .values({ ...row, id: `t${i}`, name: `t${i}` })
      .execute();
  }
  t.equal((await owner.call('POST', url, { name: 'One more' })).status, 403);
});
