/** Teams, and what they may do in workspaces, on v2. */
import t from 'tap';
import { apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { addPerson, firstOrganization, widenFirstKey } from '#test/support/people.ts';

const api = await startApi(t);
await widenFirstKey(api);
const { db } = api.context;
const organizationId = await firstOrganization(api);
const base = `/api/v2/organizations/${organizationId}`;
const teams = `${base}/teams`;
const NOBODY = 'c0000000000000000000000000';

/** Returns a key that cannot write, or not even read, the organization. */
async function keyWith(organizationRead: 0 | 1, organizationWrite: 0 | 1): Promise<string> {
  const key = await api.addKey({ [workspaceId]: 'manage' });
  const id = key.replace('fbk_', '');
  await db
    .updateTable('apiKeys')
    .set({ organizationRead, organizationWrite, allWorkspaces: 'manage' })
    .where('id', '=', id)
    .execute();
  return key;
}
const withKey = (key: string, method: 'GET' | 'POST' | 'DELETE', url: string, body?: unknown) =>
  api.client(method, url, body, { 'x-api-key': key });

t.test('POST 201, GET 200, PUT 200, DELETE 200', async (t) => {
  const made = await api.manage('POST', teams, { name: ' Support ' });
  t.equal(made.status, 201);
  t.strictSame(Object.keys(made.json.data).sort(), [
    'createdAt',
    'id',
    'name',
    'organizationId',
    'updatedAt',
  ]);
  t.match(made.json.data, { name: 'Support', organizationId });
  const one = `${teams}/${made.json.data.id}`;
  t.strictSame((await api.manage('GET', one)).json, made.json);
  api.advance(1000);
  t.match((await api.manage('PUT', one, { name: 'Sales' })).json, { data: { name: 'Sales' } });
  const second = (await api.manage('POST', teams, { name: 'Second' })).json.data;
  const list = await api.manage('GET', `${teams}?limit=1`);
  t.match(list, {
    status: 200,
    json: { data: [{ id: second.id }], meta: { total: 2, limit: 1, offset: 0 } },
  });
  t.match((await api.manage('GET', `${teams}?order=asc&limit=1`)).json, { data: [{ name: 'Sales' }] });
  t.match((await api.manage('DELETE', one)).json, { data: { name: 'Sales' } });
  t.match(await api.manage('GET', one), {
    status: 404,
    json: { error: { details: [{ field: 'team', issue: 'not found' }] } },
  });
});

t.test('409: a taken name, 422: no name, 403: the maximum', async (t) => {
  t.equal((await api.manage('POST', teams, { name: 'Twice' })).status, 201);
  t.match(await api.manage('POST', teams, { name: 'Twice' }), {
    status: 409,
    json: { error: { details: [{ field: 'name' }] } },
  });
  for (const body of [{}, { name: '' }, { name: 1 }, { name: '   ' }, { name: 'x'.repeat(300) }]) {
    t.match(await api.manage('POST', teams, body), {
      status: 422,
      json: { error: { details: [{ field: 'name' }] } },
    });
  }
  const now = new Date(api.context.clock()).toISOString();
  const many = Array.from({ length: 198 }, (_, i) => ({
    ...{ id: `team${i}`, createdAt: now, updatedAt: now, organizationId, name: `Team ${i}` },
  }));
  await db.insertInto('teams').values(many).execute();
  t.match(await api.manage('POST', teams, { name: 'One more' }), {
    status: 403,
    json: { error: { details: [{ issue: /200/ }] } },
  });
  await db.deleteFrom('teams').where('name', 'like', 'Team %').execute();
});

t.test('401: sessions, other organizations, and keys without the right', async (t) => {
  const reader = await keyWith(1, 0);
  t.equal((await withKey(reader, 'GET', teams)).status, 200);
  t.equal((await withKey(reader, 'POST', teams, { name: 'X' })).status, 401);
  const none = await keyWith(0, 0);
  t.equal((await withKey(none, 'GET', teams)).status, 401);
  t.equal((await api.client('GET', teams)).status, 401);
  for (const path of ['teams', 'workspace-teams']) {
    const other = await api.manage('GET', `/api/v2/organizations/${NOBODY}/${path}`);
    t.match(other, { status: 401, json: { error: { code: 401, message: 'Unauthorized' } } });
  }
  const one = await api.addKey({ [workspaceId]: 'manage' });
  t.equal((await withKey(one, 'GET', teams)).status, 401, 'a key must manage all workspaces');
});

for (const name of ['workspace-teams', 'project-teams']) {
  t.test(`${name}: POST 201, GET 200, PUT 200, DELETE 200`, async (t) => {
    const url = `${base}/${name}`;
    await db.deleteFrom('teamWorkspaces').execute();
    const { id: teamId } = (await api.manage('POST', teams, { name })).json.data;
    const made = await api.manage('POST', url, { teamId, workspaceId, permission: 'read' });
    t.match(made, {
      status: 201,
      json: { data: { teamId, workspaceId, projectId: workspaceId, permission: 'read' } },
    });
    t.strictSame(Object.keys(made.json.data).sort(), [
      'createdAt',
      'permission',
      'projectId',
      'teamId',
      'updatedAt',
      'workspaceId',
    ]);
    t.equal((await api.manage('POST', url, { teamId, workspaceId, permission: 'manage' })).status, 409);
    api.advance(1000);
    const changed = await api.manage('PUT', url, { teamId, projectId: workspaceId, permission: 'readWrite' });
    t.match(changed, {
      status: 200,
      json: { data: { permission: 'readWrite', createdAt: made.json.data.createdAt } },
    });
    t.not(changed.json.data.updatedAt, made.json.data.updatedAt);
    const list = await api.manage('GET', `${url}?teamId=${teamId}`);
    t.match(list.json, { data: [{ permission: 'readWrite' }], meta: { total: 1, limit: 50, offset: 0 } });
    t.strictSame((await api.manage('GET', `${url}?workspaceId=${NOBODY}`)).json.data, []);
    t.strictSame((await api.manage('GET', `${url}?startDate=2030-01-01`)).json.data, []);
    const place = `${url}?teamId=${teamId}&projectId=${workspaceId}`;
    t.match(await api.manage('DELETE', place), { status: 200, json: { data: { permission: 'readWrite' } } });
    // The workspace exists, so the reply must not say that it does not.
    const gone = {
      status: 404,
      json: { error: { details: [{ field: 'workspaceTeam', issue: 'not found' }] } },
    };
    t.match(await api.manage('DELETE', place), gone);
    t.match(await api.manage('PUT', url, { teamId, workspaceId, permission: 'read' }), gone);
  });
}

t.test('workspace-teams: 404 for rows of another organization, 400 and 422 for missing values', async (t) => {
  const url = `${base}/workspace-teams`;
  const { id: teamId } = (await api.manage('POST', teams, { name: 'Third' })).json.data;
  const now = new Date(api.context.clock()).toISOString();
  const row = { createdAt: now, updatedAt: now };
  await db
    .insertInto('organizations')
    .values({ ...row, id: 'other', name: 'Other', isOperators: 0 })
    .execute();
  await db
    .insertInto('teams')
    .values({ ...row, id: 'foreign', organizationId: 'other', name: 'Foreign' })
    .execute();
  await api.addWorkspace('elsewhere');
  await db.updateTable('workspaces').set({ organizationId: 'other' }).where('id', '=', 'elsewhere').execute();
  const send = (change: object) =>
    api.manage('POST', url, { teamId, workspaceId, permission: 'read', ...change });
  for (const change of [
    { teamId: NOBODY },
    { teamId: 'foreign' },
    { workspaceId: NOBODY },
    { workspaceId: 'elsewhere' },
  ]) {
    t.equal((await send(change)).status, 404, JSON.stringify(change));
  }
  t.match(await send({ workspaceId: undefined }), {
    status: 400,
    json: { error: { details: [{ field: 'workspaceId' }] } },
  });
  for (const change of [
    { teamId: undefined },
    { teamId: 1 },
    { permission: 'all' },
    { workspaceId: 'No Id' },
  ]) {
    t.equal((await send(change)).status, 422, JSON.stringify(change));
  }
  t.equal((await api.manage('DELETE', url)).status, 422);
  t.equal((await api.manage('DELETE', `${url}?teamId=${teamId}`)).status, 400);
  t.equal((await api.client('DELETE', url, undefined, { 'x-api-key': apiKey })).status, 422);
});

t.test('the members of a team get the access that a key gives it', async (t) => {
  const { browser, id: userId } = await addPerson(api, 'Mia', 'member');
  const { id: teamId } = (await api.manage('POST', teams, { name: 'Fourth' })).json.data;
  await db
    .insertInto('teamMembers')
    .values({ teamId, userId, role: 'contributor', createdAt: new Date(api.context.clock()).toISOString() })
    .execute();
  const read = () => browser.call('GET', '/api/v1/management/responses');
  t.equal((await read()).status, 401);
  await api.manage('POST', `${base}/workspace-teams`, { teamId, workspaceId, permission: 'read' });
  t.equal((await read()).status, 200);
});
