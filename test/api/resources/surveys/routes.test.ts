import t from 'tap';
import { actionClasses } from '#api/resources/action-classes/store.ts';
import { languages } from '#api/resources/languages/store.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, publicUrl, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const path = '/api/v1/management/surveys';
const now = new Date(api.context.clock()).toISOString();
const { db, random } = api.context;
const row = () => ({ id: newId(random), workspaceId, createdAt: now, updatedAt: now });
const action = {
  ...row(),
  name: 'Sign up',
  description: null,
  type: 'code' as const,
  key: 'signup',
  noCodeConfig: null,
};
await actionClasses.insert(db, action);
await languages.insert(db, { ...row(), code: 'de', alias: 'german' });
await languages.insert(db, { ...row(), code: 'en', alias: null });
await api.addWorkspace('ws2');

t.test('200: a new survey has every field, with null for unset ones', async (t) => {
  const reply = await api.manage('POST', path, {
    environmentId: workspaceId,
    name: 'Plain',
    questions: [{ id: 'q1', type: 'openText', headline: 'What?' }],
  });
  t.equal(reply.status, 200);
  const { data } = reply.json;
  t.match(data.id, /^c[0-9a-z]{24}$/);
  const block = data.blocks[0];
  const element = {
    id: 'q1',
    type: 'openText',
    headline: { default: 'What?' },
    required: true,
    inputType: 'text',
    charLimit: { enabled: false },
  };
  t.strictSame(data, {
    id: data.id,
    createdAt: now,
    updatedAt: now,
    workspaceId,
    environmentId: workspaceId,
    name: 'Plain',
    type: 'link',
    status: 'draft',
    createdBy: null,
    slug: null,
    blocks: [{ id: block.id, name: 'Block 1', elements: [element] }],
    questions: [element],
    endings: [],
    welcomeCard: { enabled: false, timeToFinish: true, showResponseCount: false },
    hiddenFields: { enabled: false },
    variables: [],
    displayOption: 'displayOnce',
    displayLimit: null,
    displayPercentage: null,
    recontactDays: null,
    delay: 0,
    autoClose: null,
    autoComplete: null,
    redirectUrl: null,
    pin: null,
    publishOn: null,
    closeOn: null,
    archivedAt: null,
    isVerifyEmailEnabled: false,
    isSingleResponsePerEmailEnabled: false,
    isBackButtonHidden: false,
    isAutoProgressingEnabled: false,
    isCaptureIpEnabled: false,
    singleUse: { enabled: false, isEncrypted: true },
    showLanguageSwitch: null,
    languages: [],
    triggers: [],
    segment: null,
    styling: null,
    workspaceOverwrites: null,
    projectOverwrites: null,
    productOverwrites: null,
    surveyClosedMessage: null,
    recaptcha: { enabled: false, threshold: 0.1 },
    metadata: {},
    followUps: [],
    customHeadScripts: null,
    customHeadScriptsMode: 'add',
  });
  const read = await api.manage('GET', `${path}/${data.id}`);
  t.strictSame(read.json.data, data);
  t.strictSame((await api.manage('GET', `/api/v1/surveys/${data.id}`)).json.data, data, 'by its alias');
});

t.test('200: triggers by id or name and languages by code or object, in one format', async (t) => {
  const survey = await addSurvey(api, {
    type: 'app',
    triggers: [
      { actionClass: { id: action.id } },
      { actionClass: 'Sign up' },
      { actionClass: { name: 'Sign up' } },
    ],
    languages: [
      { language: 'en', default: true, enabled: true },
      { language: { code: 'de' }, default: false, enabled: false },
    ],
  });
  t.match(survey.triggers, [{ actionClass: { id: action.id, name: 'Sign up', environmentId: workspaceId } }]);
  t.equal(survey.triggers.length, 1, 'an action class that is named twice is one trigger');
  t.strictSame(survey.languages, [
    { language: 'en', default: true, enabled: true },
    { language: 'de', default: false, enabled: false },
  ]);
});

t.test('200: an app survey gets a private segment, which is deleted with it', async (t) => {
  const survey = await addSurvey(api, { type: 'app' });
  t.match(survey.segment, { title: survey.id, isPrivate: true, filters: [], surveys: [survey.id] });
  const other = await addSurvey(api, { type: 'app', segmentId: survey.segment.id });
  t.equal(other.segment.id, survey.segment.id, 'the surveys share a segment');
  for (const [{ id }, left] of [
    [survey, [{ id: survey.segment.id }]],
    [other, []],
  ] as const) {
    t.equal((await api.manage('DELETE', `${path}/${id}`)).status, 200);
    const found = await db.selectFrom('segments').select('id').where('id', '=', survey.segment.id).execute();
    t.strictSame(found, left, 'the segment is deleted with the last survey that uses it');
  }
});

t.test('200: a link survey has no triggers, and gets a segment when it becomes an app survey', async (t) => {
  const survey = await addSurvey(api, { triggers: [{ actionClass: 'Sign up' }] });
  t.strictSame(survey.triggers, []);
  const { json } = await api.manage('PUT', `${path}/${survey.id}`, {
    type: 'app',
    triggers: [{ actionClass: 'Sign up' }],
  });
  t.equal(json.data.segment.title, survey.id);
});

t.test('200: all three names of the overwrites, older spellings, and copied welcome texts', async (t) => {
  const overwrites = { placement: 'center' };
  for (const name of ['workspaceOverwrites', 'projectOverwrites', 'productOverwrites']) {
    const survey = await addSurvey(api, { [name]: overwrites });
    t.strictSame(survey.workspaceOverwrites, overwrites);
    t.strictSame(survey.projectOverwrites, overwrites);
    t.strictSame(survey.productOverwrites, overwrites);
  }
  const old = await addSurvey(api, {
    productOverwrites: { darkOverlay: true },
    welcomeCard: { enabled: true, headline: 'Hi', html: 'Text' },
  });
  t.match(old.productOverwrites, { overlay: 'dark' });
  t.match(old.welcomeCard, { html: { default: 'Text' }, subheader: { default: 'Text' } });
});

t.test('200: a partial update keeps the other fields, and returns the whole survey', async (t) => {
  const survey = await addSurvey(api, { endings: [{ id: 'e1', type: 'endScreen', headline: 'Bye' }] });
  api.advance(1_000);
  const { json } = await api.manage('PUT', `${path}/${survey.id}`, {
    status: 'paused',
    id: 'other',
    createdAt: '2000-01-01',
    workspaceId: 'ws2',
    unknown: 1,
  });
  t.strictSame(json.data, {
    ...survey,
    status: 'paused',
    updatedAt: new Date(api.context.clock()).toISOString(),
  });
});

t.test('200: new questions replace the old ones, and those that stay keep their block', async (t) => {
  const survey = await addSurvey(api);
  const { json } = await api.manage('PUT', `${path}/${survey.id}`, {
    questions: [
      { id: 'q0', type: 'nps', headline: 'Recommend?' },
      { id: 'q1', type: 'openText', headline: 'Why?' },
    ],
  });
  t.equal(json.data.blocks[1].id, survey.blocks[0].id);
  t.equal(json.data.questions[1].headline.default, 'Why?');
});

t.test('200: the list begins with the latest change, in pages', async (t) => {
  const fresh = await startApi(t);
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    ids.unshift((await addSurvey(fresh, { name })).id);
    fresh.advance(1);
  }
  const list = async (query: string): Promise<string[]> =>
    (await fresh.manage('GET', `${path}${query}`)).json.data.map(({ id }: { id: string }) => id);
  t.strictSame(await list(''), ids);
  t.strictSame(await list('?limit=1&offset=1'), [ids[1]]);
  t.strictSame(await list('?limit=99999999'), ids, 'a larger limit is reduced, not refused');
  await fresh.manage('PUT', `${path}/${ids[2]}`, { name: 'z' });
  t.equal((await list(''))[0], ids[2]);
  for (const query of ['?limit=x', '?limit=0', '?offset=-1', '?limit=1&limit=2']) {
    t.equal((await fresh.manage('GET', `${path}${query}`)).status, 400, query);
  }
});

t.test('404: an unknown survey or workspace, before the body is checked', async (t) => {
  for (const id of ['cnothing', 'Not-An-Id', 'x'.repeat(100)]) {
    const reply = await api.manage('PUT', `${path}/${id}`, '{ not JSON');
    t.equal(reply.status, 404, id);
    t.match(reply.json, { message: 'Survey not found', details: { resource_type: 'Survey' } });
  }
  const scope = await api.manage('POST', path, surveyBody({ workspaceId: 'nope' }));
  t.equal(scope.status, 404);
  t.strictSame(scope.json.details, { resource_id: 'nope', resource_type: 'Workspace' });
});

t.test('400: a bad scope', async (t) => {
  const missing = await api.manage('POST', path, { name: 'x' });
  t.equal(missing.json.message, 'workspaceId must be provided');
  const wrong = await api.manage('POST', path, { workspaceId: 1 });
  t.equal(wrong.json.message, 'workspaceId must be a string');
});

t.test('400: questions and blocks exclude each other', async (t) => {
  const neither = await api.manage('POST', path, surveyBody({ questions: [] }));
  t.equal(neither.json.message, 'Must provide either questions or blocks. Both cannot be empty.');
  const survey = await addSurvey(api);
  const both = await api.manage('PUT', `${path}/${survey.id}`, survey);
  t.equal(
    both.json.message,
    'Cannot provide both questions and blocks. Please provide only one of these fields.',
  );
});

t.test('400: references to rows outside the workspace', async (t) => {
  const cases: readonly (readonly [Record<string, unknown>, string])[] = [
    [{ type: 'app', triggers: [{ actionClass: { id: 'nope' } }] }, 'triggers.0.actionClass'],
    [{ type: 'app', triggers: [{ actionClass: 'nope' }] }, 'triggers.0.actionClass'],
    [{ type: 'app', triggers: ['nope'] }, 'triggers.0.actionClass'],
    [{ languages: [{ language: 'fr' }] }, 'languages.0.language'],
    [{ languages: [{ language: 'de', default: 'yes' }] }, 'languages.0.default'],
    [{ languages: [{ language: 'de' }, { language: 'de' }] }, 'languages.1.language'],
    [
      {
        languages: [
          { language: 'de', default: true },
          { language: 'en', default: true },
        ],
      },
      'languages',
    ],
    [{ languages: {} }, 'languages'],
    [{ segmentId: 'nope' }, 'segmentId'],
    [{ segmentId: 7 }, 'segmentId'],
  ];
  for (const [overrides, field] of cases) {
    const reply = await api.manage('POST', path, surveyBody(overrides));
    t.equal(reply.status, 400, field);
    t.strictSame(Object.keys(reply.json.details), [field]);
  }
});

t.test('409: a slug belongs to one survey', async (t) => {
  const survey = await addSurvey(api, { slug: 'hello' });
  t.equal(survey.slug, 'hello');
  const second = await api.manage('POST', path, surveyBody({ slug: 'hello' }));
  t.equal(second.status, 409);
  t.equal(second.json.code, 'conflict');
  t.equal((await api.manage('PUT', `${path}/${survey.id}`, { slug: 'hello' })).status, 200, 'its own slug');
});

t.test('200: deletes a survey that was answered, and returns it', async (t) => {
  const survey = await addSurvey(api);
  const body = { surveyId: survey.id, finished: false, data: { q1: 'x' } };
  await api.client('POST', `/api/v1/client/${workspaceId}/responses`, body);
  await api.client('POST', `/api/v1/client/${workspaceId}/displays`, body);
  const reply = await api.manage('DELETE', `${path}/${survey.id}`, '{ ignored');
  t.equal(reply.status, 200, 'the body of a deletion is ignored');
  const {
    languages: _languages,
    followUps: _followUps,
    workspaceOverwrites: _workspace,
    projectOverwrites: _project,
    productOverwrites: _product,
    ...itself
  } = survey;
  t.strictSame(reply.json.data, { ...itself, questions: [] });
  t.equal((await api.manage('GET', `${path}/${survey.id}`)).status, 404);
});

t.test('200: single-use links are all different, and signed if the survey asks for it', async (t) => {
  const survey = await addSurvey(api, { singleUse: { enabled: true, isEncrypted: true } });
  const links = async (query: string) => api.manage('GET', `${path}/${survey.id}/singleUseIds${query}`);
  const ten = await links('');
  t.equal(ten.json.data.length, 10);
  t.equal(new Set(ten.json.data).size, 10);
  t.match(
    ten.json.data[0],
    new RegExp(`^${publicUrl}/s/${survey.id}\\?suId=c[0-9a-z]{24}&suToken=[0-9a-f]{64}$`),
  );
  t.equal((await links('?limit=3')).json.data.length, 3);
  t.equal((await links('?limit=0')).json.message, 'Limit cannot be less than 1');
  t.equal((await links('?limit=5001')).json.message, 'Limit cannot be more than 5000');
  t.equal((await links('?limit=x')).status, 400);
  const open = await addSurvey(api, { singleUse: { enabled: true, isEncrypted: false } });
  const unsigned = await api.manage('GET', `${path}/${open.id}/singleUseIds?limit=1`);
  t.match(unsigned.json.data[0], /\?suId=c[0-9a-z]{24}$/);
  const off = await addSurvey(api);
  t.equal(
    (await api.manage('GET', `${path}/${off.id}/singleUseIds`)).json.message,
    'Single use links are not enabled for this survey',
  );
  const app = await addSurvey(api, { type: 'app' });
  t.equal(
    (await api.manage('GET', `${path}/${app.id}/singleUseIds`)).json.message,
    'Single use links are only available for link surveys',
  );
});

t.test('single-use links use SURVEY_URL when it is set', async (t) => {
  const known = await startApi(t, {
    env: { SURVEY_URL: 'https://surveys.example.com/a/{surveyId}?lang=de' },
  });
  const survey = await addSurvey(known, { singleUse: { enabled: true, isEncrypted: true } });
  const reply = await known.manage('GET', `${path}/${survey.id}/singleUseIds?limit=1`);
  t.match(
    reply.json.data[0],
    new RegExp(
      `^https://surveys\\.example\\.com/a/${survey.id}\\?lang=de&suId=c[0-9a-z]{24}&suToken=[0-9a-f]{64}$`,
    ),
  );
});

t.test('the name of the scope in older clients: accepted, and returned', async (t) => {
  const key = await api.addKey({ ws2: 'manage' });
  const reply = await api.client('POST', path, surveyBody({ workspaceId: undefined, environmentId: 'ws2' }), {
    'x-api-key': key,
  });
  t.equal(reply.status, 200);
  t.match(reply.json.data, { workspaceId: 'ws2', environmentId: 'ws2' });
});
