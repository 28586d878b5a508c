/** Sessions manage API keys, and see the licence and integrations. */
import t from 'tap';
import { apiKey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const browser = await logInOwner(api);
const url = '/api/v1/api-keys';
const use = (key: string, path = '/api/v1/management/surveys') =>
  api.client('GET', path, undefined, { 'x-api-key': key });

t.test('200: by default a key manages every workspace of the organization', async (t) => {
  const made = await browser.call('POST', url, { label: ' Mine ' });
  t.equal(made.status, 200);
  t.match(made.json.data, {
    label: 'Mine',
    apiKey: /^fbk_[\w-]{43}$/,
    organizationAccess: { accessControl: { read: true, write: false } },
    workspacePermissions: [
      { workspaceId, permission: 'manage' },
      { workspaceId: 'ws2', permission: 'manage' },
    ],
    lastUsedAt: null,
  });
  t.equal((await use(made.json.data.apiKey)).status, 200);
  const stored = await api.context.db.selectFrom('apiKeys').selectAll().execute();
  t.notMatch(JSON.stringify(stored), made.json.data.apiKey, 'only a hash is stored');
});

t.test('200: a key for all workspaces can access later ones too', async (t) => {
  const fresh = await startApi(t);
  const owner = await logInOwner(fresh);
  const listed = async (key: string): Promise<string[]> =>
    (
      await fresh.client('GET', '/api/v1/management/action-classes', undefined, { 'x-api-key': key })
    ).json.data.map(({ name }: { name: string }) => name);
  const make = async (body: Record<string, unknown>) => (await owner.call('POST', url, body)).json.data;
  const all = await make({ label: 'All' });
  const readers = await make({ label: 'Readers', allWorkspaces: 'read' });
  const some = await make({ label: 'Some', workspacePermissions: [{ workspaceId, permission: 'manage' }] });
  t.match([all.allWorkspaces, readers.allWorkspaces, some.allWorkspaces], ['manage', 'read', null]);
  await fresh.addWorkspace('later');
  const added = (key: string, name: string) =>
    fresh.client(
      'POST',
      '/api/v1/management/action-classes',
      { workspaceId: 'later', name, type: 'code', key: name },
      { 'x-api-key': key },
    );
  t.equal((await added(all.apiKey, 'new')).status, 200);
  t.equal((await added(readers.apiKey, 'newer')).status, 401, 'the key may only read');
  t.ok((await listed(readers.apiKey)).includes('new'));
  t.notOk((await listed(some.apiKey)).includes('new'));
  const shown = (await owner.call('GET', url)).json.data.find(({ id }: { id: string }) => id === all.id);
  t.strictSame(shown.workspacePermissions, [
    { workspaceId: 'later', permission: 'manage' },
    { workspaceId, permission: 'manage' },
  ]);
  const both = { label: 'x', allWorkspaces: 'read', workspacePermissions: [] };
  t.match((await owner.call('POST', url, both)).json.details, { allWorkspaces: /workspacePermissions/ });
});

t.test('200: limited keys; a revoked key is refused at once', async (t) => {
  const made = await browser.call('POST', url, {
    label: 'Reader',
    workspacePermissions: [{ workspaceId: 'ws2', permission: 'read' }],
    organizationAccess: { accessControl: { read: false, write: false } },
  });
  const { apiKey: key, id } = made.json.data;
  t.equal((await use(key, '/api/v1/management/me')).json.workspace.id, 'ws2');
  t.equal((await use(key, '/api/v2/me')).status, 401, 'the key has no right on the organization');
  t.equal(
    (await api.client('POST', '/api/v1/management/surveys', { workspaceId: 'ws2' }, { 'x-api-key': key }))
      .status,
    401,
  );
  const listed = (await browser.call('GET', url)).json.data;
  t.notOk(JSON.stringify(listed).includes(key));
  t.ok(listed.some((one: { id: string }) => one.id === id));
  t.equal((await browser.call('DELETE', `${url}/${id}`)).status, 200);
  t.equal((await use(key)).status, 401);
  const again = await browser.call('DELETE', `${url}/${id}`);
  t.equal(again.status, 404);
  t.match(again.json, { message: 'API Key not found' });
});

t.test('400: a bad label, a workspace of another organization, or one given twice', async (t) => {
  const ws = (id: string) => ({ workspaceId: id, permission: 'read' });
  for (const body of [
    {},
    { label: '' },
    { label: '  ' },
    { label: 'x'.repeat(256) },
    { label: 'x', workspacePermissions: [ws('foreign')] },
    { label: 'x', workspacePermissions: [ws('ws2'), ws('ws2')] },
    { label: 'x', workspacePermissions: [{ workspaceId: 'ws2', permission: 'own' }] },
  ]) {
    t.equal((await browser.call('POST', url, body)).status, 400, JSON.stringify(body));
  }
  t.equal((await browser.call('POST', url, { label: 'x', organizationId: 'foreign' })).status, 401);
});

t.test('401: without a session; a key cannot create keys', async (t) => {
  for (const method of ['GET', 'POST'] as const) {
    t.equal((await api.client(method, url, { label: 'x' })).status, 401);
    t.equal((await api.client(method, url, { label: 'x' }, { 'x-api-key': apiKey })).status, 401);
  }
});

t.test('a page of another origin cannot use the session to make changes', async (t) => {
  const foreign = { origin: 'https://evil.feedback.example.com' };
  const refused = await browser.call('POST', url, { label: 'x' }, foreign);
  t.equal(refused.status, 403);
  t.match(refused.json, { code: 'forbidden', message: /another origin/ });
  t.equal((await browser.call('POST', url, { label: 'x' }, { origin: 'null' })).status, 403);
  t.equal((await browser.call('POST', url, { label: 'x' }, { origin: publicUrl })).status, 200);
});

t.test('a session can manage like a key; with a key header only the key counts', async (t) => {
  const survey = { workspaceId, name: 'S', questions: [{ id: 'q1', type: 'openText', headline: 'What?' }] };
  const made = await browser.call('POST', '/api/v1/management/surveys', survey);
  t.equal(made.status, 200);
  const path = `/api/v1/management/surveys/${made.json.data.id}`;
  t.equal((await browser.call('GET', path)).status, 200);
  t.equal((await browser.call('GET', path, undefined, { 'x-api-key': 'wrong' })).status, 401);
  t.equal((await browser.call('GET', '/api/v2/me')).status, 401, 'v2 accepts only keys');
  t.equal((await browser.call('DELETE', path)).status, 200);
});

t.test('401: the role member gives no right to see or change keys', async (t) => {
  const { browser: member } = await addPerson(api, 'Member', 'member');
  t.equal((await member.call('GET', url)).status, 401);
  t.equal((await member.call('POST', url, { label: 'x' })).status, 401);
});

t.test('licence and integrations report their state', async (t) => {
  const licence = await browser.call('POST', '/api/v1/license/recheck');
  t.match(licence.json, { data: { status: 'not_required', message: /without a licence/ } });
  t.equal(
    (await api.client('POST', '/api/v1/license/recheck', undefined, { 'x-api-key': apiKey })).status,
    401,
  );
  const now = new Date(api.context.clock()).toISOString();
  const row = {
    workspaceId,
    name: null,
    url: 'https://x.example',
    triggers: '[]',
    surveyIds: '[]',
    secret: 'whsec_AAAA',
  };
  for (const [id, source] of [
    ['w1', 'zapier'],
    ['w2', 'zapier'],
    ['w3', 'n8n'],
  ] as const) {
    await api.context.db
      .insertInto('webhooks')
      .values({ ...row, id, source, createdAt: now, updatedAt: now })
      .execute();
  }
  const { json } = await browser.call('GET', '/api/v1/integrations');
  t.match(json.meta.about, /webhooks/);
  t.strictSame(json.data, [
    { source: 'n8n', workspaceId, webhookCount: 1, lastChangedAt: now },
    { source: 'zapier', workspaceId, webhookCount: 2, lastChangedAt: now },
  ]);
  t.equal((await browser.call('GET', '/api/v1/integrations/zapier')).json.data.length, 1);
  t.strictSame((await browser.call('GET', '/api/v1/integrations/none')).json.data, []);
  t.equal((await api.client('GET', '/api/v1/integrations', undefined, { 'x-api-key': apiKey })).status, 401);
  t.equal((await openBrowser(api).call('GET', '/api/v1/integrations')).status, 401);
});

const access = (read: boolean, write: boolean) => ({ accessControl: { read, write } });
const writing = { allWorkspaces: 'manage', organizationAccess: access(true, true) };

t.test('organizationAccess: read is for /api/v2/me, and write is only stored', async (t) => {
  const made = (await browser.call('POST', url, { label: 'x', ...writing })).json.data;
  t.strictSame(made.organizationAccess, access(true, true));
  const me = (await use(made.apiKey, '/api/v2/me')).json.data;
  t.strictSame(me.organizationAccess, access(true, true));
});
