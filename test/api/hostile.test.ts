/** Any request gets a reply or a refusal in the right envelope, and never a 500. */

import t from 'tap';
import { anyText } from '#test/support/any-text.ts';
import { addSurvey, apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { fc } from '#test/support/fast-check.ts';
import { arbitraryOf } from '#test/support/schema-arbitrary.ts';

/** Number of runs. Each run tries other values for every property of forty routes. */
const RUNS = 50;
const PATH_RUNS = 900;
/** All routes share the parser that refuses bytes that are not JSON. A few runs per route show that they use it. */
const BYTES_RUNS = 10;

const api = await startApi(t);
const survey = await addSurvey(api);
/** Random changes go to this survey, so that the first one stays open for responses. */
const changing = await addSurvey(api);
const responsesPath = `/api/v1/client/${workspaceId}/responses`;
const made = await api.client('POST', responsesPath, {
  surveyId: survey.id,
  finished: false,
  data: { q1: 'x' },
});
const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id });
const responseId = made.json.data.id;

const management = '/api/v1/management';
const v2 = '/api/v2/management';
const ofWorkspace = { workspaceId };
const idOf = async (url: string, body: Record<string, unknown>): Promise<string> => {
  const reply = await api.manage('POST', url, { ...ofWorkspace, ...body });
  if (reply.status !== 200) throw new Error(`${url} was refused: ${reply.text}`);
  return reply.json.data.id;
};
const action = { ...ofWorkspace, name: 'Act', type: 'code', key: 'act' };
const actionId = await idOf(`${management}/action-classes`, action);
const keyId = await idOf(`${management}/contact-attribute-keys`, { key: 'hostile', type: 'custom' });
const segmentId = await idOf(`${management}/segments`, { title: 'Hostile' });
const classId = await idOf(`${management}/attribute-classes`, { name: 'Hostile', type: 'code' });
const hook = { url: 'https://hooks.example/x', triggers: ['responseCreated'] };
const webhookId = await idOf('/api/v1/webhooks', hook);
await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: 'known' });

/** Blocks of a survey in the format of v3. */
const blocks = [{ name: 'B', elements: [{ id: 'q1', type: 'openText', headline: { 'en-US': 'What?' } }] }];
const newDocument = { ...ofWorkspace, name: 'x', blocks };

type Method = 'POST' | 'PUT' | 'PATCH';

/** Lists every route that takes a body, with a body that it accepts. */
const writes: readonly (readonly [Method, string, Record<string, unknown>])[] = [
  ['POST', '/api/v1/management/surveys', { workspaceId, name: 'x', questions: survey.questions }],
  ['PUT', `/api/v1/management/surveys/${changing.id}`, { name: 'x' }],
  ['POST', '/api/v1/management/responses', { surveyId: survey.id, data: { q1: 'x' }, finished: true }],
  ['PUT', `/api/v1/management/responses/${responseId}`, { data: { q1: 'y' } }],
  ['POST', responsesPath, { surveyId: survey.id, data: {}, finished: false }],
  ['PUT', `${responsesPath}/${responseId}`, { data: { q1: 'z' } }],
  ['POST', `/api/v2/client/${workspaceId}/responses`, { surveyId: survey.id, data: {}, finished: false }],
  ['PUT', `/api/v2/client/${workspaceId}/responses/${responseId}`, { ttc: { q1: 1 } }],
  ['POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id }],
  ['POST', `/api/v2/client/${workspaceId}/displays`, { surveyId: survey.id }],
  ['PUT', `/api/v1/client/${workspaceId}/displays/${display.json.data.id}`, { userId: 'u' }],
  ['POST', `/api/v1/client/${workspaceId}/user`, { userId: 'u', attributes: { plan: 'pro' } }],
  ['POST', `/api/v2/client/${workspaceId}/user`, { userId: 'u', attributes: { plan: 'pro' } }],
  ['PUT', `/api/v1/client/${workspaceId}/contacts/known/attributes`, { attributes: { plan: 'pro' } }],
  ['PUT', `/api/v1/client/${workspaceId}/people/known/attributes`, { attributes: { plan: 'pro' } }],
  ['POST', `${management}/action-classes`, { ...action, key: 'act2' }],
  ['PUT', `${management}/action-classes/${actionId}`, action],
  ['POST', `${management}/contact-attribute-keys`, { ...ofWorkspace, key: 'hostile_2', type: 'custom' }],
  ['PUT', `${management}/contact-attribute-keys/${keyId}`, { name: 'Hostile' }],
  ['POST', `${management}/attribute-classes`, { ...ofWorkspace, name: 'Hostile 2', type: 'code' }],
  ['PUT', `${management}/attribute-classes/${classId}`, { archived: true }],
  ['POST', `${management}/segments`, { ...ofWorkspace, title: 'Hostile 2', filters: [] }],
  ['PUT', `${management}/segments/${segmentId}`, { filters: [] }],
  ['POST', `${management}/languages`, { ...ofWorkspace, code: 'de' }],
  ['POST', '/api/v3/surveys', newDocument],
  ['PATCH', `/api/v3/surveys/${changing.id}`, { name: 'x' }],
  ['POST', '/api/v3/surveys/validate', { operation: 'create', data: newDocument }],
  ['POST', '/api/v1/webhooks', hook],
  ['PUT', `/api/v1/webhooks/${webhookId}`, hook],
  ['POST', `${v2}/responses`, { surveyId: survey.id, data: {}, finished: true }],
  ['PUT', `${v2}/responses/${responseId}`, { data: { q1: 'y' } }],
  ['POST', `${v2}/webhooks`, { ...ofWorkspace, ...hook, name: null, source: 'user', surveyIds: [] }],
  ['PUT', `${v2}/webhooks/${webhookId}`, hook],
  ['POST', `${v2}/contact-attribute-keys`, { ...ofWorkspace, key: 'hostile_3' }],
  ['PUT', `${v2}/contact-attribute-keys/${keyId}`, { name: 'Hostile' }],
  ['POST', `${v2}/contacts`, { ...ofWorkspace, attributes: { email: 'a@example.com' } }],
  [
    'PUT',
    `${v2}/contacts/bulk`,
    {
      ...ofWorkspace,
      contacts: [{ attributes: [{ attributeKey: { key: 'email' }, value: 'b@example.com' }] }],
    },
  ],
];

/** Names that routes know, so that random values reach the checks. */
const fieldNames = [
  ...Object.keys(survey),
  ...['surveyId', 'data', 'finished', 'ttc', 'variables', 'meta', 'language', 'userId', 'contactId'],
  ...['displayId', 'singleUseId', 'endingId', 'createdAt', 'updatedAt', 'responseId', 'segmentId'],
  ...[
    'key',
    'noCodeConfig',
    'description',
    'dataType',
    'archived',
    'url',
    'source',
    'surveyIds',
    'attributes',
    'code',
    'alias',
  ],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'default', '_total'],
];

const anything = fc.jsonValue({ maxDepth: 4 });
const withKnownNames = fc.dictionary(fc.constantFrom(...fieldNames), anything, { maxKeys: 4 });
const question = fc.record(
  {
    id: fc.oneof(fc.constantFrom('q1', 'userId', 'a b', ''), anything),
    type: fc.oneof(
      fc.constantFrom('openText', 'matrix', 'cta', 'ranking', 'address', 'fileUpload', 'nope'),
      anything,
    ),
    headline: fc.oneof(fc.string(), anything),
    choices: anything,
    rows: fc.oneof(fc.array(anything), anything),
    validation: fc.oneof(
      fc.record({
        rules: fc.array(
          fc.record({ id: anything, type: fc.constantFrom('pattern', 'minLength'), params: anything }),
        ),
      }),
      anything,
    ),
    logic: fc.oneof(fc.array(fc.record({ actions: fc.array(anything) })), anything),
    charLimit: anything,
    addressLine1: anything,
  },
  { requiredKeys: [] },
);
const noCodeConfig = fc.record(
  {
    type: fc.oneof(fc.constantFrom('click', 'pageView', 'pageDwell', 'constructor'), anything),
    urlFilters: fc.oneof(
      fc.array(
        fc.record({
          value: fc.oneof(fc.string(), anything),
          rule: fc.oneof(fc.constantFrom('matchesRegex', 'exactMatch'), anything),
        }),
      ),
      anything,
    ),
    elementSelector: fc.oneof(fc.record({ cssSelector: anything }), anything),
    timeInSeconds: anything,
  },
  { requiredKeys: [] },
);
const attributes = fc.dictionary(
  fc.oneof(fc.constantFrom('email', 'language', 'userId', 'toString', 'valueOf', 'plan'), fc.string()),
  fc.oneof(fc.string(), fc.boolean(), fc.double(), anything),
);
const filter = fc.record({
  connector: fc.oneof(fc.constantFrom(null, 'and', 'or'), anything),
  resource: fc.oneof(
    fc.record({
      root: fc.oneof(
        fc.record({
          type: fc.constantFrom('attribute', 'person', 'segment', 'device', 'surveyInteraction'),
          contactAttributeKey: fc.constantFrom('plan', 'toString'),
        }),
        anything,
      ),
      value: fc.oneof(fc.string(), anything),
      qualifier: fc.record({
        operator: fc.oneof(
          fc.constantFrom('equals', 'isBetween', 'userIsIn', 'haveSeen', 'constructor'),
          anything,
        ),
      }),
    }),
    anything,
  ),
});
const webUrl = fc
  .tuple(fc.constantFrom('http', 'https'), fc.webAuthority(), anyText())
  .map(([scheme, authority, path]) => `${scheme}://${authority}/${encodeURIComponent(path)}`);
const withParts = fc.record(
  {
    filters: fc.oneof(fc.array(filter), anything),
    title: fc.oneof(fc.string(), anything),
    type: fc.constantFrom('noCode', 'code', 'custom'),
    noCodeConfig: fc.oneof(noCodeConfig, anything),
    attributes: fc.oneof(attributes, anything),
    userId: fc.oneof(fc.string(), anything),
    name: fc.oneof(fc.string(), anything),
    key: fc.oneof(fc.string(), anything),
    url: fc.oneof(
      webUrl,
      fc.string(),
      fc.constantFrom('http://', 'http://[', 'http://%00', 'javascript:1'),
      anything,
    ),
    triggers: fc.oneof(fc.array(fc.constantFrom('responseCreated', 'x')), anything),
  },
  { requiredKeys: [] },
);
const logic = fc.record(
  {
    id: fc.oneof(fc.string(), anything),
    conditions: fc.oneof(
      fc.record({ connector: fc.constant('and'), conditions: fc.array(anything) }),
      anything,
    ),
    actions: fc.oneof(
      fc.array(fc.record({ objective: fc.constantFrom('jumpToBlock', 'calculate', 'x'), target: anything })),
      anything,
    ),
  },
  { requiredKeys: [] },
);
const document = fc.record(
  {
    blocks: fc.oneof(
      fc.array(fc.record({ name: fc.string(), elements: fc.array(question), logic: fc.array(logic) })),
      anything,
    ),
    languages: fc.oneof(
      fc.array(fc.record({ code: fc.constantFrom('de-DE', 'de', '__proto__'), enabled: fc.boolean() })),
      anything,
    ),
    defaultLanguage: fc.oneof(fc.constantFrom('de-DE', 'constructor'), anything),
    type: fc.constantFrom('app', 'link'),
    distribution: anything,
    targeting: fc.oneof(fc.record({ filters: fc.array(filter) }), anything),
    operation: fc.constantFrom('create', 'patch'),
    data: anything,
  },
  { requiredKeys: [] },
);
const hostileBody = fc.oneof(
  document,
  withParts,
  anything,
  withKnownNames,
  fc.record({ questions: fc.array(fc.oneof(question, anything), { maxLength: 3 }) }),
  fc.record({
    blocks: fc.array(fc.oneof(fc.record({ id: anything, elements: fc.array(question) }), anything)),
  }),
);

function isEnvelopeB(text: string): boolean {
  const { error } = JSON.parse(text);
  const details = error.details ?? [];
  return (
    typeof error.code === 'number' &&
    typeof error.message === 'string' &&
    Array.isArray(details) &&
    details.every(({ field, issue }) => typeof field === 'string' && typeof issue === 'string')
  );
}

function isEnvelopeA(text: string): boolean {
  const body: unknown = JSON.parse(text);
  if (typeof body !== 'object' || body === null) return false;
  const { code, message, details } = Object.fromEntries(Object.entries(body));
  return (
    typeof code === 'string' &&
    typeof message === 'string' &&
    typeof details === 'object' &&
    details !== null &&
    !Array.isArray(details)
  );
}

function isProblem(text: string): boolean {
  const body: unknown = JSON.parse(text);
  if (typeof body !== 'object' || body === null) return false;
  const { code, detail, status, title } = Object.fromEntries(Object.entries(body));
  return [code, detail, title].every((part) => typeof part === 'string') && typeof status === 'number';
}

function isEnvelopeOf(url: string, text: string): boolean {
  if (url.startsWith('/api/v3/')) return isProblem(text);
  return url.startsWith(v2) ? isEnvelopeB(text) : isEnvelopeA(text);
}

const { components, paths: documented } = (await api.client('GET', '/api/docs/openapi.json')).json;

/** Makes bodies that are similar to the documented shape. */
function documentedBody(method: string, url: string): fc.Arbitrary<unknown> {
  const parts = url.split('/');
  const isOf = (path: string): boolean => {
    const names = path.split('/');
    return (
      names.length === parts.length && names.every((name, i) => name.startsWith('{') || name === parts[i])
    );
  };
  const path = Object.keys(documented).find((one) => isOf(one) && method.toLowerCase() in documented[one]);
  const body = path === undefined ? undefined : documented[path][method.toLowerCase()].requestBody;
  if (body === undefined) throw new Error(`${method} ${url} has no documented body`);
  return arbitraryOf(body.content['application/json'].schema, components.schemas);
}

/** A finished run would refuse all that follow. */
async function reopen(): Promise<void> {
  await api.context.db.updateTable('responses').set({ finished: 0 }).where('id', '=', responseId).execute();
}

/** Checks that the request succeeds, or is refused in the envelope of its surface. */
async function isBorne(method: Method, url: string, body: unknown): Promise<boolean> {
  const reply = await api.manage(method, url, body);
  if (reply.status < 300) return typeof reply.json.data === 'object';
  return reply.status >= 400 && reply.status < 500 && isEnvelopeOf(url, reply.text);
}

for (const [method, url, valid] of writes) {
  t.test(`${method} ${url.replaceAll(/c[a-z0-9]{24}/g, '{id}')}: bodies near its schema`, async (t) => {
    const bodies = documentedBody(method, url);
    await fc.assert(
      fc
        .asyncProperty(bodies, fc.subarray(Object.keys(valid)), async (body, kept) => {
          const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
          // Some fields keep valid values, so that the others are checked.
          const right = Object.fromEntries(kept.map((name) => [name, valid[name]]));
          return isBorne(method, url, isObject ? { ...body, ...right } : body);
        })
        .beforeEach(reopen),
      { numRuns: RUNS },
    );
    t.pass(`${RUNS} bodies`);
  });

  t.test(`${method} ${url.replaceAll(/c[a-z0-9]{24}/g, '{id}')}: random bodies get no 500`, async (t) => {
    await fc.assert(
      fc
        .asyncProperty(hostileBody, fc.boolean(), async (body, isMixed) => {
          const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
          return isBorne(method, url, isMixed && isObject ? { ...valid, ...body } : body);
        })
        .beforeEach(reopen),
      { numRuns: RUNS },
    );
    t.pass(`${RUNS} bodies`);
  });

  t.test(`${method} ${url.replaceAll(/c[a-z0-9]{24}/g, '{id}')}: random bytes get no 500`, async (t) => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
        const reply = await api.app.inject({
          method,
          url,
          headers: { 'x-api-key': apiKey },
          payload: Buffer.from(bytes),
        });
        return reply.statusCode >= 400 && reply.statusCode < 500 && isEnvelopeOf(url, reply.body);
      }),
      { numRuns: BYTES_RUNS },
    );
    t.pass(`${BYTES_RUNS} bodies`);
  });
}

const pathPart = fc.oneof(
  anyText({ maxLength: 20 }).map(encodeURIComponent),
  fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/[^\x21-\x7e]|[?#]/g, '')),
  fc.constantFrom(
    '%00',
    '%zz',
    '%',
    '..',
    '%2e%2e',
    '%2F',
    "'",
    '"; drop table surveys; --',
    '%F0%9F%98',
    'a'.repeat(600),
  ),
);
const paths: readonly ((part: string) => readonly ['GET' | 'PUT' | 'DELETE' | 'POST', string])[] = [
  (part) => ['GET', `/api/v1/client/${part}/environment`],
  (part) => ['POST', `/api/v1/client/${part}/responses`],
  (part) => ['PUT', `/api/v1/client/${workspaceId}/responses/${part}`],
  (part) => ['PUT', `/api/v1/client/${workspaceId}/displays/${part}`],
  (part) => ['GET', `/api/v1/client/${workspaceId}/displays/${part}/response`],
  (part) => ['GET', `/api/v1/management/surveys/${part}`],
  (part) => ['PUT', `/api/v1/management/surveys/${part}`],
  (part) => ['DELETE', `/api/v1/management/responses/${part}`],
  (part) => ['GET', `/api/v1/management/responses?surveyId=${part}&x=1`],
  (part) => ['GET', `/api/v1/management/surveys/${survey.id}/singleUseIds?limit=${part}x`],
  ...[
    'contacts',
    'people',
    'contact-attribute-keys',
    'attribute-classes',
    'action-classes',
    'segments',
    'languages',
  ].flatMap((name) => [
    (part: string) => ['GET', `${management}/${name}/${part}`] as const,
    (part: string) => ['DELETE', `${management}/${name}/${part}`] as const,
    (part: string) => ['GET', `${management}/${name}?limit=${part}&skip=${part}`] as const,
  ]),
  ...['responses', 'webhooks', 'contact-attribute-keys'].flatMap((name) => [
    (part: string) => ['GET', `${v2}/${name}/${part}`] as const,
    (part: string) => ['PUT', `${v2}/${name}/${part}`] as const,
    (part: string) => ['DELETE', `${v2}/${name}/${part}`] as const,
    (part: string) =>
      ['GET', `${v2}/${name}?limit=1&surveyIds=${part}&workspaceId=${part}&startDate=${part}`] as const,
  ]),
  (part) => ['GET', `/api/v1/webhooks/${part}`],
  (part) => ['DELETE', `/api/v1/webhooks/${part}`],
  (part) => ['POST', `/api/v1/client/${part}/user`],
  (part) => ['GET', `/api/v1/client/${workspaceId}/identify/contacts/${part}`],
  (part) => ['PUT', `/api/v1/client/${workspaceId}/contacts/${part}/attributes`],
  // After `//` and `/\` the URL parser of inject expects a host.
  (part) => ['GET', `/_${part}`],
];
t.test('random paths get no 500', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), pathPart, async (toPath, part) => {
      const [method, url] = toPath(part);
      const reply = await api.manage(method, url.replaceAll(' ', '%20'), method === 'GET' ? undefined : {});
      if (reply.status < 300) return true;
      return reply.status >= 400 && reply.status < 500 && isEnvelopeOf(url, reply.text);
    }),
    { numRuns: PATH_RUNS },
  );
  t.pass(`${PATH_RUNS} paths`);
});
