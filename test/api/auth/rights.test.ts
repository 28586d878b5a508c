/** People have rights in workspaces by their role in the organization, and as members of teams. */
import t from 'tap';
import { permissionIn } from '#api/auth/principal.ts';
import { addSurvey, apiKey, type Reply, startApi, workspaceId } from '#test/support/api-app.ts';
import type { Browser } from '#test/support/login.ts';
import { addPerson, addTeam } from '#test/support/people.ts';

t.test(
  'owners and managers have all rights; a member of several teams has the highest of their rights',
  async (t) => {
    t.equal(permissionIn('owner', []), 'manage');
    t.equal(permissionIn('manager', ['read']), 'manage');
    t.equal(permissionIn('member', []), null);
    t.equal(permissionIn('member', ['read']), 'read');
    t.equal(permissionIn('member', ['readWrite']), 'write');
    t.equal(permissionIn('member', ['read', 'manage', 'readWrite']), 'manage');
  },
);

const api = await startApi(t);
await api.addWorkspace('ws2');
const survey = await addSurvey(api, { type: 'link' });
const action = (
  await api.manage('POST', '/api/v1/management/action-classes', {
    workspaceId,
    name: 'A',
    type: 'code',
    key: 'a',
  })
).json.data;
const segment = (await api.manage('POST', '/api/v1/management/segments', { workspaceId, title: 'S' })).json
  .data;
const language = (await api.manage('POST', '/api/v1/management/languages', { workspaceId, code: 'de' })).json
  .data;
const response = (
  await api.manage('POST', '/api/v1/management/responses', { surveyId: survey.id, data: {}, finished: false })
).json.data;
await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'u1' });
const [contact] = (await api.manage('GET', '/api/v1/management/contacts')).json.data;
const [key] = (await api.manage('GET', '/api/v1/management/contact-attribute-keys')).json.data;
const webhook = (
  await api.manage('POST', '/api/v1/webhooks', {
    workspaceId,
    url: 'https://hooks.example.com/',
    triggers: ['responseCreated'],
  })
).json.data;

const ids: Readonly<Record<string, string>> = {
  workspaceId,
  surveyId: survey.id,
  actionClassId: action.id,
  segmentId: segment.id,
  languageId: language.id,
  responseId: response.id,
  contactId: contact.id,
  personId: contact.id,
  contactAttributeKeyId: key.id,
  attributeClassId: key.id,
  webhookId: webhook.id,
  deliveryId: 'none',
  accessType: 'private',
  fileName: 'a.pdf',
};

/** These routes are about the caller or about an organization. They have tests of their own. */
const ABOUT_PEOPLE =
  /^\/api\/(auth\/|v1\/(me|management\/me|api-keys|integrations|license|profile|organizations))/;

interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** Whether the route names no row: it lists rows or creates one. */
  readonly isCollection: boolean;
}

const document = (await api.client('GET', '/api/docs/openapi.json')).json;
const operations: readonly Operation[] = Object.entries<Record<string, { security?: object[] }>>(
  document.paths,
).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, { security = [] }]) => {
    const takesSession = security.some((one) => 'session' in one);
    if (!takesSession || ABOUT_PEOPLE.test(path)) return [];
    const url = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none');
    const isV3List = path.startsWith('/api/v3') && method === 'get' && !path.includes('{');
    const scope = isV3List ? `?workspaceId=${workspaceId}` : '';
    return {
      method: method.toUpperCase() as Operation['method'],
      url: url + scope,
      isCollection: !path.includes('{'),
    };
  }),
);

/** This body is enough for every route to find the workspace. */
const body = {
  workspaceId,
  surveyId: survey.id,
  email: 'somebody@example.com',
  url: 'https://hooks.example.com/',
  triggers: ['responseCreated'],
  data: {},
  finished: false,
};
const newV3Survey = {
  workspaceId,
  name: 'x',
  blocks: [{ name: 'B', elements: [{ id: 'q', type: 'openText', headline: { 'en-US': 'What?' } }] }],
};
/** v3 checks the body before the rights, and refuses unknown fields. */
const v3Bodies: Readonly<Record<string, object>> = {
  'POST /api/v3/surveys': newV3Survey,
  'POST /api/v3/surveys/validate': { operation: 'create', data: newV3Survey },
  [`PATCH /api/v3/surveys/${survey.id}`]: { name: 'x' },
  'PATCH /api/v3/tags/none': { name: 'x' },
  'POST /api/v3/tags/none/merge': { newTagId: 'other' },
};
const send = (browser: Browser, { method, url }: Operation): Promise<Reply> =>
  browser.call(method, url, method === 'GET' ? undefined : (v3Bodies[`${method} ${url}`] ?? body));

const REFUSED = [401, 403];

t.test('the test of all routes covers the management API', async (t) => {
  t.ok(operations.length > 50, `${operations.length} operations`);
});

t.test('a member without a team on the workspace can neither see nor change it', async (t) => {
  const { browser, id } = await addPerson(api, 'Stranger', 'member');
  await addTeam(api, 'Elsewhere', { [id]: 'admin' }, { ws2: 'manage' });
  for (const operation of operations) {
    const { method, url, isCollection } = operation;
    const reply = await send(browser, operation);
    if (method === 'GET' && isCollection && reply.status === 200) {
      const found = JSON.stringify(reply.json.data);
      t.notMatch(found, new RegExp(`"${workspaceId}"|${survey.id}|${contact.id}`), `${method} ${url}`);
    } else {
      t.ok(REFUSED.includes(reply.status), `${method} ${url}: ${reply.status}`);
    }
  }
});

t.test('a member without any team gets the error for a missing right, not for a missing login', async (t) => {
  const { browser } = await addPerson(api, 'Nobody', 'member');
  const reply = await browser.call('GET', '/api/v1/management/responses');
  t.equal(reply.status, 401);
  t.match(reply.json, { code: 'unauthorized' });
  t.same((await browser.call('GET', '/api/v1/management/surveys')).json, { data: [] });
});

t.test('a team with read: its members see everything and change nothing', async (t) => {
  const { browser, id } = await addPerson(api, 'Reader', 'member');
  await addTeam(api, 'Readers', { [id]: 'contributor' }, { [workspaceId]: 'read' });
  const file = `/storage/${workspaceId}/private/a.pdf`;
  for (const operation of operations) {
    const { method, url } = operation;
    const reply = await send(browser, operation);
    // A GET creates single-use links.
    const isRead = method === 'GET' && !url.includes('/singleUseIds');
    t.equal(REFUSED.includes(reply.status), !isRead, `${method} ${url}: ${reply.status}`);
  }
  t.equal((await browser.call('GET', file)).status, 404, 'allowed, but the file does not exist');
});

t.test('a team with readWrite: its members cannot delete; with manage they can', async (t) => {
  const writer = await addPerson(api, 'Writer', 'member');
  await addTeam(api, 'Writers', { [writer.id]: 'contributor' }, { [workspaceId]: 'readWrite' });
  const manager = await addPerson(api, 'Chief', 'member');
  await addTeam(api, 'Chiefs', { [manager.id]: 'contributor' }, { [workspaceId]: 'manage' });
  const webhookUrl = `/api/v1/webhooks/${webhook.id}`;
  const actionUrl = `/api/v1/management/action-classes/${action.id}`;
  const surveyUrl = `/api/v1/management/surveys/${survey.id}`;
  t.equal((await writer.browser.call('PUT', surveyUrl, { name: 'Changed' })).status, 200);
  for (const url of [webhookUrl, actionUrl, surveyUrl]) {
    t.equal((await writer.browser.call('DELETE', url)).status, 401, url);
  }
  for (const url of [webhookUrl, actionUrl, surveyUrl]) {
    t.equal((await manager.browser.call('DELETE', url)).status, 200, url);
  }
  t.equal((await writer.browser.call('GET', '/api/v1/api-keys')).status, 401, 'keys need more rights');
  t.equal((await manager.browser.call('GET', '/api/v1/api-keys')).status, 401);
});

t.test('a team gives no rights to people outside its organization', async (t) => {
  const outsider = await addPerson(api, 'Outsider', null);
  await addTeam(api, 'Left', { [outsider.id]: 'admin' }, { [workspaceId]: 'manage' });
  t.same((await outsider.browser.call('GET', '/api/v1/management/surveys')).json, { data: [] });
  t.equal((await outsider.browser.call('GET', '/api/v1/management/responses')).status, 401);
});

t.test('the rights of a key do not depend on teams', async (t) => {
  const reply = await api.client('GET', '/api/v1/management/contacts', undefined, { 'x-api-key': apiKey });
  t.equal(reply.json.data.length, 1);
});
