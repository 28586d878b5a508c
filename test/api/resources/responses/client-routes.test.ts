import t from 'tap';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { pinAuthToken, verifiedEmailToken } from '#api/resources/responses/submission-checks.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const { db, signer } = api.context;
const v1 = `/api/v1/client/${workspaceId}/responses`;
const v2 = `/api/v2/client/${workspaceId}/responses`;
/** This response has no answers yet. */
const empty = { finished: false, data: {} };
const survey = await addSurvey(api, {
  questions: [
    {
      id: 'q1',
      type: 'openText',
      headline: 'Why?',
    },
    {
      id: 'q2',
      type: 'multipleChoiceSingle',
      headline: 'Pick',
      required: false,
      choices: [
        { id: 'a', label: 'A' },
        { id: 'other', label: 'Other' },
      ],
    },
    { id: 'q3', type: 'fileUpload', headline: 'File', required: false, allowMultipleFiles: true },
  ],
  hiddenFields: { enabled: true, fieldIds: ['campaign'] },
});
await api.addWorkspace('ws2');
const contact = await findOrCreateContact(
  db,
  workspaceId,
  'user-1',
  '2026-01-01T00:00:00.000Z',
  api.context.random,
);

const stored = async (id: string) =>
  (await api.manage('GET', `/api/v1/management/responses/${id}`)).json.data;

t.test('200: what is not the code of a country is not stored as one', async (t) => {
  const body = { surveyId: survey.id, finished: false, data: {} };
  for (const country of ['x'.repeat(4_000), 'C', '<b']) {
    const { json } = await api.client('POST', v1, body, { 'cf-ipcountry': country });
    t.strictSame(
      (await stored(json.data.id)).meta,
      { userAgent: { device: 'desktop' } },
      country.slice(0, 9),
    );
  }
  const { json } = await api.client('POST', v1, body, { 'cloudfront-viewer-country': 'T1' });
  t.equal((await stored(json.data.id)).meta.country, 'T1');
});

for (const path of [v1, v2]) {
  t.test(`200: ${path} stores the response and returns its id and quotaFull`, async (t) => {
    const reply = await api.client(
      'POST',
      path,
      {
        surveyId: survey.id,
        finished: true,
        data: { q1: 'xyz', campaign: 'spring', other: ['a', 'b'], map: { a: 'b' }, n: 1 },
        ttc: { q1: 1_500.5, q2: -5, q3: 1e12, _total: 7 },
        variables: { score: 3 },
        language: 'de',
        endingId: 'e1',
        meta: {
          url: 'https://shop.example/',
          source: 'mail',
          action: 'click',
          country: 'XX',
          ipAddress: '1.2.3.4',
        },
        createdAt: '2000-01-01',
      },
      {
        'user-agent':
          'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0) AppleWebKit/605 Version/17.0 Mobile/15E148 Safari/604.1',
        'cf-ipcountry': 'CH',
      },
    );
    t.equal(reply.status, 200);
    const { id } = reply.json.data;
    t.strictSame(reply.json, { data: { id, quotaFull: false } });
    t.equal(reply.headers['access-control-allow-origin'], '*');
    const now = new Date(api.context.clock()).toISOString();
    t.strictSame(await stored(id), {
      id,
      createdAt: now,
      updatedAt: now,
      surveyId: survey.id,
      finished: true,
      endingId: 'e1',
      displayId: null,
      data: { q1: 'xyz', campaign: 'spring', other: ['a', 'b'], map: { a: 'b' }, n: 1 },
      variables: { score: 3 },
      ttc: { q1: 1_500.5, q2: 0, q3: 86_400_000, _total: 86_401_500.5 },
      meta: {
        source: 'mail',
        url: 'https://shop.example/',
        action: 'click',
        userAgent: { browser: 'Mobile Safari', os: 'iOS', device: 'mobile' },
        country: 'CH',
      },
      person: null,
      personAttributes: null,
      contact: null,
      contactAttributes: null,
      singleUseId: null,
      language: 'de',
      tags: [],
      notes: [],
    });
  });
}

t.test('200: only the survey is required, and null counts as absent', async (t) => {
  const reply = await api.client('POST', v1, {
    ...empty,
    surveyId: survey.id,
    userId: null,
    displayId: null,
    singleUseId: null,
    language: null,
    meta: null,
  });
  t.equal(reply.status, 200);
  t.match(await stored(reply.json.data.id), { finished: false, data: {}, ttc: {}, language: null });
});

t.test('200: v1 links a known user, v2 a known contact; unknown ones are ignored', async (t) => {
  const create = async (path: string, fields: Record<string, unknown>) =>
    stored((await api.client('POST', path, { ...empty, surveyId: survey.id, ...fields })).json.data.id);
  t.match(await create(v1, { userId: 'user-1' }), {
    contact: { id: contact.id, userId: 'user-1' },
    person: {
      id: contact.id,
      userId: 'user-1',
      attributes: { userId: 'user-1' },
      environmentId: workspaceId,
    },
    contactAttributes: { userId: 'user-1' },
    personAttributes: { userId: 'user-1' },
  });
  t.match(await create(v2, { contactId: contact.id }), { contact: { id: contact.id } });
  t.match(await create(v1, { userId: 'user-2' }), { contact: null });
  t.match(await create(v1, { contactId: contact.id }), { contact: null });
  t.match(await create(v2, { userId: 'user-1', contactId: 'nope' }), { contact: null });
});

t.test('200: stores the address only if the survey asks for it, and only from a trusted proxy', async (t) => {
  const capturing = await addSurvey(api, { isCaptureIpEnabled: true });
  const create = async (surveyId: string) => {
    const reply = await api.client(
      'POST',
      v1,
      { ...empty, surveyId },
      { 'x-forwarded-for': '8.8.8.8, 203.0.113.9' },
    );
    return (await stored(reply.json.data.id)).meta.ipAddress;
  };
  t.equal(await create(capturing.id), '203.0.113.9', 'the address that the trusted proxy on loopback saw');
  t.equal(await create(survey.id), undefined);
  const unreadable = await api.client(
    'POST',
    v1,
    { ...empty, surveyId: capturing.id },
    { 'x-forwarded-for': 'nonsense' },
  );
  t.equal(
    (await stored(unreadable.json.data.id)).meta.ipAddress,
    undefined,
    'no unreadable address is stored',
  );
});

t.test('200: ends the survey when enough responses are finished', async (t) => {
  const short = await addSurvey(api, { type: 'app', autoComplete: 2 });
  const send = (finished: boolean) =>
    api.client('POST', v1, { surveyId: short.id, finished, data: { q1: 'x' } });
  const live = async (): Promise<boolean> =>
    (await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).text.includes(short.id);
  t.equal((await send(true)).status, 200);
  t.equal((await send(false)).status, 200);
  t.ok(await live());
  t.equal((await send(true)).status, 200);
  t.notOk(await live(), 'SDKs do not get the survey any more');
  t.equal((await send(true)).status, 403);
});

t.test('404: an unknown workspace or survey', async (t) => {
  const workspace = await api.client('POST', '/api/v1/client/nope/responses', {
    ...empty,
    surveyId: survey.id,
  });
  t.equal(workspace.status, 404);
  t.strictSame(workspace.json, {
    code: 'not_found',
    message: 'Workspace not found',
    details: { resource_id: 'nope', resource_type: 'Workspace' },
  });
  const unknown = await api.client('POST', v1, { ...empty, surveyId: 'cnothing' });
  t.equal(unknown.status, 404);
  t.strictSame(unknown.json.details, { resource_id: 'cnothing', resource_type: 'Survey' });
});

t.test('v1 checks the JSON before the workspace, v2 after it', async (t) => {
  t.equal((await api.client('POST', '/api/v1/client/nope/responses', '{')).status, 400);
  t.equal((await api.client('POST', '/api/v2/client/nope/responses', '{')).status, 404);
  t.equal((await api.client('POST', '/api/v1/client/nope/responses', {})).status, 404, 'before the fields');
});

t.test('400: invalid fields', async (t) => {
  const cases: readonly (readonly [unknown, string, string])[] = [
    [{}, 'surveyId', 'Required'],
    [{ surveyId: 'No-Id' }, 'surveyId', 'Invalid cuid2'],
    [{ surveyId: survey.id, finished: 'yes' }, 'finished', 'must be boolean'],
    [{ surveyId: survey.id, data: { q1: null } }, 'data.q1', ''],
    [{ surveyId: survey.id, data: { q1: { a: 1 } } }, 'data.q1', ''],
    [{ surveyId: survey.id, ttc: { q1: 'x' } }, 'ttc.q1', ''],
    [[], 'body', 'must be object'],
    ['null', 'body', 'must be object'],
  ];
  for (const [body, field, text] of cases) {
    for (const path of [v1, v2]) {
      const reply = await api.client('POST', path, body);
      t.equal(reply.status, 400);
      t.equal(reply.json.message, 'Fields are missing or incorrectly formatted');
      t.match(reply.json.details[field], text || String, `${path} ${field}`);
    }
  }
});

t.test('400: a survey of another workspace', async (t) => {
  const reply = await api.client('POST', '/api/v1/client/ws2/responses', { ...empty, surveyId: survey.id });
  t.equal(reply.status, 400);
  t.strictSame(reply.json, {
    code: 'bad_request',
    message: 'Survey is part of another workspace',
    details: { workspaceId: 'ws2' },
  });
});

t.test('403: a survey that is not in progress', async (t) => {
  for (const status of ['draft', 'paused', 'completed']) {
    const closed = await addSurvey(api, { status });
    const reply = await api.client('POST', v1, { ...empty, surveyId: closed.id });
    t.equal(reply.status, 403);
    t.strictSame(reply.json, {
      code: 'forbidden',
      message: 'Survey is not accepting submissions',
      details: { surveyId: closed.id },
    });
  }
});

t.test('403: a survey with a PIN, without its token; on updates too', async (t) => {
  const locked = await addSurvey(api, { pin: '1234' });
  const token = pinAuthToken(locked.id, '1234', signer);
  for (const wrong of [undefined, null, '', 'x', pinAuthToken(locked.id, '4321', signer)]) {
    const reply = await api.client('POST', v1, { ...empty, surveyId: locked.id, pinAuthToken: wrong });
    t.equal(reply.status, 403);
    t.equal(reply.json.message, 'Survey is protected by a PIN');
  }
  const made = await api.client('POST', v1, { ...empty, surveyId: locked.id, pinAuthToken: token });
  t.equal(made.status, 200);
  const one = `${v1}/${made.json.data.id}`;
  t.equal((await api.client('PUT', one, { data: { q1: 'a' } })).status, 403);
  t.equal((await api.client('PUT', one, { data: { q1: 'a' }, pinAuthToken: token })).status, 200);
});

t.test('403: a survey that needs a verified address, without its link', async (t) => {
  const gated = await addSurvey(api, { isVerifyEmailEnabled: true });
  const send = (url: string | undefined) =>
    api.client('POST', v1, { ...empty, surveyId: gated.id, meta: { ...(url === undefined ? {} : { url }) } });
  const link = (token: string): string => `https://x.example/s/${gated.id}?verify=${token}`;
  const token = verifiedEmailToken(gated.id, 'me@example.com', signer);
  for (const url of [
    undefined,
    'no url',
    link(''),
    link(token.replace(/^./, 'Z')),
    link(verifiedEmailToken('c1', 'me@example.com', signer)),
  ]) {
    const reply = await send(url);
    t.equal(reply.status, 403);
    t.equal(reply.json.message, 'Survey requires email verification');
  }
  t.equal((await send(link(token))).status, 200);
});

t.test('single-use links: each mistake has its error, and one of several responses is stored', async (t) => {
  const once = await addSurvey(api, { singleUse: { enabled: true, isEncrypted: true } });
  const links = await api.manage('GET', `/api/v1/management/surveys/${once.id}/singleUseIds?limit=1`);
  const url: string = links.json.data[0];
  const suId = new URL(url).searchParams.get('suId');
  const send = (singleUseId: string | null, metaUrl: string | null) =>
    api.client('POST', v1, { ...empty, surveyId: once.id, singleUseId, meta: { url: metaUrl } });
  const refusals: readonly (readonly [string | null, string | null, string])[] = [
    [null, url, 'Missing single use id'],
    [suId, null, 'Missing or invalid URL in response metadata'],
    [suId, 'nonsense', 'Invalid URL in response metadata'],
    [suId, 'https://x.example/', 'Invalid single use id'],
    ['other', url, 'Invalid single use id'],
    [suId, url.replace(/suToken=./, 'suToken=Z'), 'Invalid single use id'],
  ];
  for (const [id, metaUrl, message] of refusals) {
    const reply = await send(id, metaUrl);
    t.equal(reply.status, 400);
    t.strictSame(reply.json, {
      code: 'bad_request',
      message,
      details: { surveyId: once.id, workspaceId },
    });
  }
  t.equal((await send(suId, url)).status, 200);
  const again = await send(suId, url);
  t.equal(again.status, 409);
  t.strictSame(again.json, {
    code: 'conflict',
    message: 'Response already submitted for this single-use link',
    details: {},
  });
  const open = await addSurvey(api, { singleUse: { enabled: true, isEncrypted: false } });
  const any = await api.client('POST', v1, {
    ...empty,
    surveyId: open.id,
    singleUseId: 'mine',
    meta: { url: 'https://x.example/?suId=mine' },
  });
  t.equal(any.status, 200, 'any id is accepted if links are not signed');
});

t.test('200: an empty id of a display or of a single-use link counts as absent', async (t) => {
  const paths = [v1, v2, '/api/v1/management/responses', '/api/v2/management/responses'];
  for (const path of [...paths, ...paths]) {
    const body = { ...empty, surveyId: survey.id, displayId: '', singleUseId: '' };
    const reply = await api.manage('POST', path, body);
    t.ok(reply.status < 300, `${path}: ${reply.text}`);
    t.match(await stored(reply.json.data.id), { displayId: null, singleUseId: null });
  }
});

t.test('v1 checks the verified address before the single-use id, v2 after it', async (t) => {
  const both = await addSurvey(api, {
    isVerifyEmailEnabled: true,
    singleUse: { enabled: true, isEncrypted: true },
  });
  t.equal((await api.client('POST', v1, { ...empty, surveyId: both.id })).status, 403);
  t.equal(
    (await api.client('POST', v2, { ...empty, surveyId: both.id })).json.message,
    'Missing single use id',
  );
});

t.test('400: a file of another site, question, survey or workspace', async (t) => {
  const send = async (files: unknown) =>
    (await api.client('POST', v1, { ...empty, surveyId: survey.id, data: { q3: files } })).status;
  const own = `/storage/${workspaceId}/private/surveys/${survey.id}/elements/q3/x.pdf`;
  t.equal(await send([own, `https://feedback.example.com${own}`]), 200);
  t.equal(await send([`/storage/${workspaceId}/private/x.pdf`]), 200);
  t.equal(await send([]), 200);
  for (const file of [
    'https://evil.example/x.pdf',
    own.replace('/q3/', '/q1/'),
    own.replace(survey.id, 'c1'),
    '/storage/ws2/private/x.pdf',
    `/storage/${workspaceId}/private/..`,
    `/storage/${workspaceId}/private/surveys/${survey.id}/elements/q3/%2e%2E`,
  ]) {
    const reply = await api.client('POST', v1, { ...empty, surveyId: survey.id, data: { q3: [file] } });
    t.equal(reply.status, 400, file);
    t.strictSame(reply.json, { code: 'bad_request', message: 'Invalid file upload response', details: {} });
  }
});

t.test('400: displays of other surveys or contacts', async (t) => {
  const display = async (surveyId: string, userId?: string): Promise<string> =>
    (await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId, userId })).json.data.id;
  const other = await addSurvey(api);
  const send = (displayId: string, userId?: string) =>
    api.client('POST', v1, { ...empty, surveyId: survey.id, displayId, userId });
  const fits = await display(survey.id);
  t.equal((await send(fits)).status, 200);
  const cases: readonly (readonly [string, string])[] = [
    [fits, 'Display is already linked to a response'],
    ['cnothing', 'Display not found'],
    [await display(other.id), 'Display is part of another survey'],
  ];
  for (const [id, message] of cases) {
    const reply = await send(id);
    t.equal(reply.status, 400);
    t.strictSame(reply.json, { code: 'bad_request', message, details: {} });
  }
  const reply = await send(await display(survey.id, 'someone-else'), 'user-1');
  t.equal(reply.json.message, 'Display belongs to another contact');
});

t.test('PUT 200: merges answers, times and variables; _total is set at the end', async (t) => {
  const made = await api.client('POST', v1, {
    ...empty,
    surveyId: survey.id,
    data: { q1: 'xyz', campaign: 'a' },
    ttc: { q1: 100 },
    variables: { a: 1 },
  });
  const { id } = made.json.data;
  api.advance(5_000);
  const first = await api.client('PUT', `${v2}/${id}`, {
    data: { campaign: 'b', q2: 'A' },
    ttc: { q2: 50 },
    variables: { b: 'x' },
    language: 'fr',
  });
  t.strictSame(first.json, { data: { id, quotaFull: false } });
  t.match(await stored(id), {
    data: { q1: 'xyz', campaign: 'b', q2: 'A' },
    ttc: { q1: 100, q2: 50, _total: undefined },
    variables: { a: 1, b: 'x' },
    language: 'fr',
    updatedAt: new Date(api.context.clock()).toISOString(),
  });
  await api.client('PUT', `${v1}/${id}`, { finished: true, endingId: 'e9' });
  t.match(await stored(id), { finished: true, endingId: 'e9', ttc: { q1: 100, q2: 50, _total: 150 } });
  const late = await api.client('PUT', `${v1}/${id}`, { data: { q2: 'B' } });
  t.equal(late.status, 400);
  t.strictSame(late.json, {
    code: 'bad_request',
    message: 'Response is already finished',
    details: { code: 'response_already_finished' },
  });
});

t.test('PUT: errors', async (t) => {
  const { id } = (await api.client('POST', v1, { ...empty, surveyId: survey.id })).json.data;
  t.equal((await api.client('PUT', `${v1}/${id}`, { data: { q1: true } })).status, 400);
  t.equal(
    (await api.client('PUT', `${v1}/${id}`, { data: { q3: ['x'] } })).json.message,
    'Invalid file upload response',
  );
  t.equal((await api.client('PUT', `${v1}/${id}`, {})).status, 200, 'an empty change is accepted');
  const foreign = await api.client('PUT', `/api/v1/client/ws2/responses/${id}`, {});
  t.strictSame(foreign.json.details, { resource_id: id, resource_type: 'Response' });
  t.equal((await api.client('PUT', `${v1}/nope`, {})).status, 404);
  t.equal(
    (await api.client('PUT', `/api/v1/client/nope/responses/${id}`, {})).json.message,
    'Workspace not found',
  );
  await api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, { status: 'paused' });
  t.equal((await api.client('PUT', `${v1}/${id}`, {})).status, 403);
});
