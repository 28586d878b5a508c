import t from 'tap';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { languages } from '#api/resources/languages/store.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

const HOUR_MS = 3_600_000;
const api = await startApi(t);
const { db, random } = api.context;
const path = `/api/v1/client/${workspaceId}/environment`;
const now = new Date(api.context.clock()).toISOString();
const row = () => ({ id: newId(random), workspaceId, createdAt: now, updatedAt: now });
const code = {
  ...row(),
  name: 'Sign up',
  description: null,
  type: 'code' as const,
  key: 'signup',
  noCodeConfig: null,
};
await actionClasses.insert(db, code);
const german = { ...row(), code: 'de', alias: 'german' };
await languages.insert(db, german);

const settings = {
  id: workspaceId,
  recontactDays: 7,
  clickOutsideClose: true,
  overlay: 'none',
  placement: 'bottomRight',
  inAppSurveyBranding: true,
  styling: { allowStyleOverwrite: true, brandColor: { light: '#64748b' } },
};
const state = async () => (await api.client('GET', path)).json.data;

t.test('200: an empty workspace, in both formats', async (t) => {
  const reply = await api.client('GET', path);
  t.equal(reply.status, 200);
  t.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
  t.equal(
    reply.headers['cache-control'],
    'public, s-maxage=60, max-age=60, stale-while-revalidate=60, stale-if-error=60',
  );
  t.equal(reply.headers['access-control-allow-origin'], '*');
  const { data } = reply.json;
  const { id, name, type, key, noCodeConfig } = code;
  t.strictSame(data.project, settings);
  t.match(data.actionClasses, [{ name: 'Sign up' }]);
  t.strictSame(data.data.actionClasses, [{ id, type, name, key, noCodeConfig }]);
  t.strictSame(data.data.workspace, settings);
  t.strictSame(data.data.project, settings);
  t.strictSame(data.data.settings, settings);
  t.strictSame(data.surveys, []);
  t.strictSame(data.data.surveys, []);
  const left = Date.parse(data.expiresAt) - api.context.clock();
  t.ok(left <= HOUR_MS && left > HOUR_MS - 5 * 60_000, 'all processes have the same windows of five minutes');
});

t.test('200: plain strings at the top, localized maps inside', async (t) => {
  const survey = await addSurvey(api, {
    type: 'website',
    pin: '1234',
    createdBy: 'author',
    followUps: [],
    autoComplete: 9,
    redirectUrl: 'https://example.com/thanks',
    surveyClosedMessage: { heading: 'Closed' },
    isVerifyEmailEnabled: true,
    singleUse: { enabled: true, isEncrypted: false },
    welcomeCard: { enabled: true, headline: { default: 'Hi', de: 'Hallo' } },
    endings: [{ id: 'e1', type: 'endScreen', headline: 'Bye', imageUrl: '/storage/ws1/public/x.png' }],
    triggers: [{ actionClass: { id: code.id } }],
    languages: [{ language: 'de', default: true, enabled: true }],
    questions: [
      {
        id: 'q1',
        type: 'multipleChoiceSingle',
        headline: { default: 'Pick', de: 'Wähle' },
        buttonLabel: 'Next',
        choices: [
          { id: 'a', label: 'A' },
          { id: 'b', label: 'B' },
        ],
      },
      { id: 'q2', type: 'openText', headline: 'Why?', charLimit: { enabled: true, max: 5 } },
    ],
  });
  const { surveys, data } = await state();
  const [outer] = surveys;
  t.match(outer, {
    id: survey.id,
    type: 'website',
    createdAt: survey.createdAt,
    updatedAt: survey.updatedAt,
    environmentId: workspaceId,
    createdBy: null,
    pin: null,
    autoComplete: 9,
    redirectUrl: 'https://example.com/thanks',
    surveyClosedMessage: { heading: 'Closed' },
    isVerifyEmailEnabled: true,
    singleUse: { enabled: true, isEncrypted: false },
    welcomeCard: { headline: 'Hi' },
    endings: [{ headline: 'Bye', imageUrl: `${publicUrl}/storage/ws1/public/x.png` }],
    triggers: [{ actionClass: 'Sign up' }],
    languages: [{ language: 'de', default: true, enabled: true }],
    variables: [],
    segment: { id: survey.segment.id, filters: [] },
    questions: [
      { headline: 'Pick', buttonLabel: 'Next', choices: [{ label: 'A' }, { label: 'B' }] },
      { headline: 'Why?', charLimit: true },
    ],
  });
  const [inner] = data.surveys;
  t.match(inner, {
    id: survey.id,
    type: 'app',
    status: 'inProgress',
    welcomeCard: { headline: { default: 'Hi', de: 'Hallo' } },
    triggers: [{ actionClass: { name: 'Sign up' } }],
    languages: [{ default: true, enabled: true, language: { ...german, projectId: workspaceId } }],
    questions: [
      { headline: { default: 'Pick', de: 'Wähle' }, buttonLabel: { default: 'Next' } },
      { charLimit: { enabled: true, max: 5 } },
    ],
    segment: { id: survey.segment.id, hasFilters: false, filters: [], surveys: [], workspaceId },
  });
  t.strictSame(inner.blocks, survey.blocks);
  const text = (await api.client('GET', path)).text;
  t.notMatch(text, /1234|author|followUps|customHeadScripts/, 'internal fields are not sent');
  t.strictSame([outer.pin, outer.createdBy], [null, null]);
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
});

t.test('200: only running app surveys, newest first, at most 30', async (t) => {
  const fresh = await startApi(t);
  await addSurvey(fresh, { type: 'link' });
  for (const status of ['draft', 'paused', 'completed', 'scheduled'])
    await addSurvey(fresh, { type: 'app', status });
  const ids: string[] = [];
  for (let i = 0; i < 32; i += 1) {
    fresh.advance(1);
    ids.unshift((await addSurvey(fresh, { type: i % 2 === 0 ? 'app' : 'website' })).id);
  }
  const { data } = (await fresh.client('GET', path)).json;
  const idsOf = (surveys: readonly { id: string }[]): string[] => surveys.map(({ id }) => id);
  t.strictSame(idsOf(data.surveys), ids.slice(0, 30));
  t.strictSame(idsOf(data.data.surveys), ids.slice(0, 30));
});

t.test('200: every change of a survey is visible at once', async (t) => {
  await api.addWorkspace('ws2');
  const key = await api.addKey({ ws2: 'manage' });
  const count = async (): Promise<number> =>
    (await api.client('GET', '/api/v1/client/ws2/environment')).json.data.surveys.length;
  const write = (method: 'POST' | 'PUT' | 'DELETE', url: string, body?: unknown) =>
    api.client(method, `/api/v1/management/surveys${url}`, body, { 'x-api-key': key });
  t.equal(await count(), 0);
  const made = await write('POST', '', {
    workspaceId: 'ws2',
    name: 'x',
    type: 'website',
    status: 'inProgress',
    questions: [{ id: 'q', type: 'nps', headline: 'x' }],
  });
  t.equal(await count(), 1);
  await write('PUT', `/${made.json.data.id}`, { status: 'paused' });
  t.equal(await count(), 0);
  await write('PUT', `/${made.json.data.id}`, { status: 'inProgress' });
  t.equal(await count(), 1);
  await write('DELETE', `/${made.json.data.id}`);
  t.equal(await count(), 0);
});

t.test('200: other changes are visible within a minute', async (t) => {
  api.advance(60_000);
  await state();
  await db.updateTable('workspaces').set({ recontactDays: 9 }).where('id', '=', workspaceId).execute();
  api.advance(60_000 - 1);
  t.equal((await state()).project.recontactDays, 7);
  api.advance(1);
  t.equal((await state()).project.recontactDays, 9);
});

t.test('200: aliases of the path give the same reply', async (t) => {
  const expected = (await api.client('GET', path)).text;
  for (const alias of [
    `/api/v2/client/${workspaceId}/environment`,
    `/api/v1/client/${workspaceId}/app/environment`,
    `/api/v1/client/${workspaceId}/website/environment`,
  ]) {
    t.equal((await api.client('GET', alias)).text, expected, alias);
  }
  t.equal((await api.client('HEAD', path)).status, 200);
});

t.test('200: the first fetch completes the setup of the app', async (t) => {
  const fresh = await startApi(t);
  const isSetUp = async () => (await fresh.manage('GET', '/api/v1/me')).json.appSetupCompleted;
  t.equal(await isSetUp(), false);
  await fresh.client('GET', path);
  await until(isSetUp, 'the set-up is complete');
});

t.test('400: malformed ids; 404: unknown ids', async (t) => {
  const malformed = await api.client('GET', '/api/v1/client/Not-An-Id/environment');
  t.equal(malformed.status, 400);
  t.strictSame(malformed.json, { code: 'bad_request', message: 'Invalid ID format', details: {} });
  const unknown = await api.client('GET', '/api/v1/client/nope/environment');
  t.equal(unknown.status, 404);
  t.strictSame(unknown.json, {
    code: 'not_found',
    message: 'Workspace not found',
    details: { resource_id: 'nope', resource_type: 'Workspace' },
  });
  t.equal(unknown.headers['cache-control'], 'private, no-store', 'an error is not cached');
  t.equal(unknown.headers['access-control-allow-origin'], '*');
});

t.test('304: an unchanged state is not sent again', async (t) => {
  const api = await startApi(t);
  await addSurvey(api, { type: 'app', status: 'inProgress' });
  const url = `/api/v1/client/${workspaceId}/environment`;
  const first = await api.client('GET', url);
  const { etag } = first.headers;
  t.match(etag, /^"[\w-]{27}"$/);
  const same = await api.client('GET', url, undefined, { 'if-none-match': `W/"x", ${etag}` });
  t.equal(same.status, 304);
  t.equal(same.text, '');
  t.equal(same.headers.etag, etag);
  t.equal(same.headers['cache-control'], first.headers['cache-control']);
  t.equal(same.headers['access-control-allow-origin'], '*');
  await addSurvey(api, { type: 'app', status: 'inProgress', name: 'Another' });
  const changed = await api.client('GET', url, undefined, { 'if-none-match': String(etag) });
  t.equal(changed.status, 200);
  t.not(changed.headers.etag, etag);
});

t.test('200: names of surveys, and names and filters of segments, are not sent', async (t) => {
  const api = await startApi(t);
  const url = `/api/v1/client/${workspaceId}/environment`;
  const segment = await api.manage('POST', '/api/v1/management/segments', {
    ...{ workspaceId, title: 'Churn risk', description: 'Those who complained' },
    filters: [{ id: 'f', connector: null, resource: { id: 'r', value: 'secret-plan' } }],
  });
  const { id: segmentId } = segment.json.data;
  const survey = await addSurvey(api, { type: 'app', name: 'Win them back', segmentId });
  const { text, json } = await api.client('GET', url);
  t.notMatch(text, /Churn|complained|Win them|secret-plan/);
  const { surveys, data } = json.data;
  for (const shown of [surveys[0], data.surveys[0]]) {
    const fixed = 'Deprecated: left out of the public API';
    const longAgo = '1970-01-01T00:00:00.000Z';
    t.match(shown, {
      id: survey.id,
      name: fixed,
      segment: { id: segmentId, title: fixed, description: fixed, createdAt: longAgo, updatedAt: longAgo },
    });
    t.match(shown.segment.filters, [{ resource: { root: { type: 'device' }, value: String } }]);
  }
  t.equal(data.surveys[0].segment.hasFilters, true);
});
