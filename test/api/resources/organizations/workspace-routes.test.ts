/** Workspaces are listed, created, renamed and set up. */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const url = '/api/v1/management/workspaces';
const newUrl = `/api/v1/organizations/${await firstOrganization(api)}/workspaces`;
const owner = await logInOwner(api);
const state = async () =>
  (await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).json.data.project;

t.test('GET 200: the workspaces of the caller, with their rights there', async (t) => {
  t.match((await owner.call('GET', url)).json.data, [
    { id: 'ws1', permission: 'manage' },
    { id: 'ws2', environmentId: 'ws2', permission: 'manage' },
  ]);
  t.match((await api.manage('GET', url)).json.data, [
    { id: workspaceId, environmentId: workspaceId, name: 'My workspace', recontactDays: 7, overlay: 'none' },
  ]);
  const member = await addPerson(api, 'Member', 'member');
  t.same((await member.browser.call('GET', url)).json, { data: [] });
  t.equal((await owner.call('PUT', `${url}/none`, {})).status, 404);
});

t.test('PUT 200: changes the given fields, and SDKs see it at once', async (t) => {
  t.match(await state(), { placement: 'bottomRight', recontactDays: 7 });
  const reply = await owner.call('PUT', `${url}/${workspaceId}`, {
    name: ' Shop ',
    placement: 'center',
    recontactDays: 0,
    styling: { brandColor: { light: '#ff0000' }, roundness: 8 },
  });
  t.equal(reply.status, 200);
  t.match(reply.json.data, { name: 'Shop', placement: 'center', recontactDays: 0, overlay: 'none' });
  t.match(await state(), {
    placement: 'center',
    recontactDays: 0,
    clickOutsideClose: true,
    styling: { allowStyleOverwrite: true, brandColor: { light: '#ff0000' }, roundness: 8 },
  });
  const key = await api.manage('PUT', `${url}/${workspaceId}`, { overlay: 'dark', clickOutsideClose: false });
  t.match(key.json.data, { name: 'Shop', overlay: 'dark', clickOutsideClose: false, placement: 'center' });
});

t.test('PUT: two concurrent calls keep each other’s changes', async (t) => {
  await Promise.all([
    owner.call('PUT', `${url}/ws2`, { recontactDays: 3 }),
    owner.call('PUT', `${url}/ws2`, { styling: { one: 1 } }),
    owner.call('PUT', `${url}/ws2`, { styling: { two: 2 } }),
  ]);
  const { data } = (await owner.call('GET', url)).json;
  t.match(data[1], { id: 'ws2', recontactDays: 3, styling: { one: 1, two: 2 } });
});

t.test('400: invalid workspaces', async (t) => {
  for (const body of [
    { name: ' ' },
    { name: 'x'.repeat(256) },
    { recontactDays: -1 },
    { recontactDays: 1.5 },
    { overlay: 'pink' },
    { placement: 'middle' },
    { inAppSurveyBranding: 'yes' },
    { styling: { brandColor: { light: 'javascript:alert(1)' } } },
    { styling: { allowStyleOverwrite: 1 } },
    { styling: { background: 'x'.repeat(70_000) } },
    { styling: [] },
  ]) {
    const reply = await owner.call('PUT', `${url}/${workspaceId}`, body);
    t.equal(reply.status, 400, JSON.stringify(body).slice(0, 60));
    t.match(reply.json, { code: 'bad_request', message: String });
  }
});

t.test('401: settings need manage; only a person who runs the organization creates one', async (t) => {
  const writer = { 'x-api-key': await api.addKey({ [workspaceId]: 'write' }) };
  t.equal((await api.client('PUT', `${url}/${workspaceId}`, { name: 'Mine' }, writer)).status, 401);
  const member = await addPerson(api, 'Earlier', 'member');
  t.equal((await member.browser.call('PUT', `${url}/${workspaceId}`, { name: 'Mine' })).status, 401);
  t.equal((await member.browser.call('POST', newUrl, { name: 'Mine' })).status, 404);
  t.equal((await api.manage('POST', newUrl, { name: 'Mine' })).status, 401, 'a key cannot create one');
});

t.test('POST 200: the workspace works at once; keys need permission for it', async (t) => {
  const made = await owner.call('POST', newUrl, { name: 'Second shop' });
  t.equal(made.status, 200);
  const { id } = made.json.data;
  t.match(made.json.data, { name: 'Second shop', permission: 'manage', recontactDays: 7 });
  const keys = await owner.call('GET', '/api/v1/management/contact-attribute-keys');
  t.ok(
    keys.json.data.some((key: { workspaceId: string }) => key.workspaceId === id),
    'the workspace has the default keys',
  );
  t.equal((await api.client('GET', `/api/v1/client/${id}/environment`)).status, 200);
  t.equal((await api.manage('PUT', `${url}/${id}`, {})).status, 401);
  t.equal(
    (await owner.call('POST', newUrl.replace(/organizations\/\w+/, 'organizations/foreign'), { name: 'x' }))
      .status,
    404,
  );
  t.equal((await owner.call('POST', newUrl, { name: ' ' })).status, 400);
});
