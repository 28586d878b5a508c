/** What a state contains, and for how long. The replies are in test/conversations/sdk.md. */
import t from 'tap';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { languages } from '#api/resources/languages/store.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

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

const state = async () => (await api.client('GET', path)).json.data;

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

t.test('200: other changes are visible within a minute', async (t) => {
  api.advance(60_000);
  await state();
  await db.updateTable('workspaces').set({ recontactDays: 9 }).where('id', '=', workspaceId).execute();
  api.advance(60_000 - 1);
  t.equal((await state()).project.recontactDays, 7);
  api.advance(1);
  t.equal((await state()).project.recontactDays, 9);
});

t.test('200: the first fetch completes the setup of the app', async (t) => {
  const fresh = await startApi(t);
  const isSetUp = async () => (await fresh.manage('GET', '/api/v1/me')).json.appSetupCompleted;
  t.equal(await isSetUp(), false);
  await fresh.client('GET', path);
  await until(isSetUp, 'the set-up is complete');
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
