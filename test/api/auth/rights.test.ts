/** Owners and managers have all rights in the workspaces of their organization, and nobody else has any. */
import t from 'tap';
import { addSurvey, apiKey, type Reply, startApi, workspaceId } from '#test/support/api-app.ts';
import type { Browser } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';

const api = await startApi(t);
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

for (const [name, role] of [
  ['Earlier', 'member'],
  ['Outsider', null],
] as const) {
  t.test(`with the role ${role}, a person can neither see nor change anything`, async (t) => {
    const { browser } = await addPerson(api, name, role);
    for (const operation of operations) {
      const { method, url, isCollection } = operation;
      const reply = await send(browser, operation);
      if (method === 'GET' && isCollection && reply.status === 200) {
        t.strictSame(reply.json, { data: [] }, `${method} ${url}`);
      } else {
        t.ok(REFUSED.includes(reply.status), `${method} ${url}: ${reply.status}`);
      }
    }
    t.match(await browser.call('GET', '/api/v1/management/responses'), {
      status: 401,
      json: { code: 'unauthorized' },
    });
    t.equal((await browser.call('GET', '/api/v1/api-keys')).status, 401);
    t.equal((await browser.call('GET', '/api/v1/me')).status, 200, 'the person can still log in');
  });
}

t.test('a manager sees and changes everything', async (t) => {
  const { browser } = await addPerson(api, 'Chief', 'manager');
  for (const operation of operations) {
    if (operation.method === 'DELETE') continue;
    const { method, url } = operation;
    const reply = await send(browser, operation);
    t.notOk(isWithoutRight(reply, url), `${method} ${url}: ${reply.status} ${reply.text}`);
  }
  const webhookUrl = `/api/v1/webhooks/${webhook.id}`;
  const actionUrl = `/api/v1/management/action-classes/${action.id}`;
  const surveyUrl = `/api/v1/management/surveys/${survey.id}`;
  for (const url of [webhookUrl, actionUrl, surveyUrl]) {
    t.equal((await browser.call('DELETE', url)).status, 200, url);
  }
  t.equal((await browser.call('GET', '/api/v1/api-keys')).status, 200);
});

/** On v3, an unknown row gets 403 too. */
function isWithoutRight({ status }: Reply, url: string): boolean {
  return REFUSED.includes(status) && !/^\/api\/v3\/.*none/.test(url);
}

t.test('a key keeps its own permissions', async (t) => {
  const reply = await api.client('GET', '/api/v1/management/contacts', undefined, { 'x-api-key': apiKey });
  t.equal(reply.json.data.length, 1);
});
