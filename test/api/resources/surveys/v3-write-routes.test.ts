/** v3 creates, patches, deletes, archives and restores surveys. */
import t from 'tap';
import { checker } from '#api/http/validation.ts';
import { describedDocument } from '#api/resources/surveys/v3-shapes.ts';
import { addActionClass, addSurvey, publicUrl, startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import type { Json } from '#test/support/json.ts';
import { logInOwner } from '#test/support/login.ts';

const api = await startApi(t);
await api.addWorkspace('ws2', 'env2');
const url = '/api/v3/surveys';
const { db } = api.context;

const described = checker(describedDocument());
const en = (text: string) => ({ 'en-US': text });
const element = (id: string, more: object = {}) => ({ id, type: 'openText', headline: en('What?'), ...more });
const document = (more: object = {}) => ({
  workspaceId,
  name: 'Survey',
  blocks: [{ name: 'First', elements: [element('q1')] }],
  ...more,
});
/** The only block of a survey, with these elements. */
const withElements = (...elements: readonly object[]) => ({ blocks: [{ name: 'B', elements }] });
const create = (more: object = {}) => api.manage('POST', url, document(more));
async function created(more: object = {}): Promise<Json> {
  const reply = await create(more);
  if (reply.status !== 201) throw new Error(reply.text);
  return reply.json.data;
}
/** The parts of a survey as it was read that a patch may replace. */
function changeableOf({ blocks, endings, hiddenFields, languages, metadata, variables, welcomeCard }: Json) {
  return { blocks, endings, hiddenFields, languages, metadata, variables, welcomeCard };
}
const patch = (id: string, change: unknown) => api.manage('PATCH', `${url}/${id}`, change);
const { id: actionClassId } = await addActionClass(api, 'Cart opened');

/** A filter of a target group. */
const equals = (root: object, value: string) => ({
  ...{ id: 'f1', connector: null },
  resource: { id: 'r1', root, value, qualifier: { operator: 'equals' } },
});

t.test('201: the smallest survey, with its defaults and Location', async (t) => {
  const reply = await create();
  t.equal(reply.status, 201);
  const { id, createdAt, blocks } = reply.json.data;
  t.equal(reply.headers.location, `/api/v3/surveys/${id}`);
  t.match(reply.headers['x-request-id'], /./);
  t.strictSame(reply.json.data, {
    id,
    workspaceId,
    createdAt,
    updatedAt: createdAt,
    name: 'Survey',
    type: 'link',
    status: 'draft',
    archivedAt: null,
    defaultLanguage: 'en-US',
    languages: [],
    metadata: {},
    welcomeCard: { enabled: false, timeToFinish: true, showResponseCount: false },
    blocks: [
      {
        id: blocks[0].id,
        name: 'First',
        elements: [
          {
            id: 'q1',
            type: 'openText',
            headline: en('What?'),
            required: true,
            inputType: 'text',
            charLimit: { enabled: false },
          },
        ],
      },
    ],
    endings: [],
    hiddenFields: { enabled: false },
    variables: [],
  });
  t.match(blocks[0].id, /^c[0-9a-z]{24}$/);
  t.strictSame((await api.manage('GET', `${url}/${id}`)).json.data, reply.json.data);
  const { data } = (await api.manage('GET', `/api/v1/management/surveys/${id}`)).json;
  t.match(data, { questions: [{ id: 'q1', headline: { default: 'What?' } }], createdBy: null });
});

t.test('201: a link survey with every field', async (t) => {
  const languages = [
    { code: 'de-DE', default: true, enabled: true },
    { code: 'en-US', default: false, enabled: true },
  ];
  const both = (de: string, english: string) => ({ 'de-DE': de, 'en-US': english });
  const given = {
    status: 'inProgress',
    defaultLanguage: 'de-DE',
    languages,
    metadata: {
      title: both('Titel', 'Title'),
      description: { 'de-DE': 'Nur deutsch' },
      ogImage: 'https://x.example/a.png',
    },
    welcomeCard: {
      enabled: true,
      headline: both('Hallo', 'Hello'),
      subheader: both('Text', 'Text'),
      buttonLabel: both('Los', 'Go'),
      timeToFinish: false,
      showResponseCount: true,
    },
    blocks: [
      {
        id: 'cblock1',
        name: 'First',
        elements: [element('q1', { headline: both('Was?', 'What?'), placeholder: both('Hier', 'Here') })],
        buttonLabel: both('Weiter', 'Next'),
        logic: [
          {
            id: 'l1',
            conditions: {
              id: 'g1',
              connector: 'and',
              conditions: [
                {
                  id: 'c1',
                  leftOperand: { type: 'element', value: 'q1' },
                  operator: 'equals',
                  rightOperand: { type: 'static', value: 'yes' },
                },
                {
                  id: 'g2',
                  connector: 'or',
                  conditions: [
                    { id: 'c2', leftOperand: { type: 'hiddenField', value: 'h1' }, operator: 'isSet' },
                  ],
                },
              ],
            },
            actions: [
              { id: 'a1', objective: 'jumpToBlock', target: 'cend' },
              { id: 'a2', objective: 'requireAnswer', target: 'q2' },
              {
                id: 'a3',
                objective: 'calculate',
                variableId: 'cv1',
                operator: 'add',
                value: { type: 'static', value: 2 },
              },
            ],
          },
        ],
        logicFallback: 'cblock2',
      },
      {
        id: 'cblock2',
        name: 'Second',
        elements: [
          {
            id: 'q2',
            type: 'multipleChoiceSingle',
            headline: both('Welche?', 'Which?'),
            required: false,
            choices: [
              { id: 'a', label: both('A', 'A') },
              { id: 'b', label: both('B', 'B') },
            ],
          },
        ],
      },
    ],
    endings: [
      { id: 'cend', type: 'endScreen', headline: both('Danke', 'Thanks'), buttonLink: 'https://x.example' },
      { id: 'caway', type: 'redirectToUrl', url: 'https://x.example', label: 'Away' },
    ],
    hiddenFields: { enabled: true, fieldIds: ['h1'] },
    variables: [{ id: 'cv1', name: 'score', type: 'number', value: 0 }],
  };
  const data = await created(given);
  t.match(data, given);
  t.match(data.languages, languages);
  t.strictSame(described.issues(data), {}, 'the survey fits its description');
  const again = await patch(data.id, changeableOf(data));
  t.equal(again.status, 200, again.text);
  t.strictSame({ ...again.json.data, updatedAt: data.updatedAt }, data, 'a read survey can be written back');
  const v1 = (await api.manage('GET', `/api/v1/management/surveys/${data.id}`)).json.data;
  t.strictSame(v1.questions[0].headline, { default: 'Was?', 'en-US': 'What?' });
  t.strictSame(v1.languages[0], { language: 'de-DE', default: true, enabled: true });
  t.match(v1.welcomeCard, { html: { default: 'Text' }, subheader: { default: 'Text' } });
  const known = (await api.manage('GET', '/api/v1/management/languages')).json.data;
  t.strictSame(column(known, 'code'), ['de-DE', 'en-US'], 'missing languages are added to the workspace');
});

t.test('201: an app survey is shown to its target group', async (t) => {
  const filter = equals({ type: 'attribute', contactAttributeKey: 'email' }, 'jane@example.com');
  const data = await created({
    type: 'app',
    status: 'inProgress',
    distribution: { displayOption: 'displayMultiple', delay: 3, triggers: [{ actionClassId }] },
    targeting: { filters: [filter] },
  });
  t.strictSame(data.distribution, {
    displayOption: 'displayMultiple',
    displayPercentage: null,
    displayLimit: null,
    recontactDays: null,
    autoClose: null,
    autoComplete: null,
    delay: 3,
    triggers: [{ actionClassId }],
  });
  t.strictSame(data.targeting, { filters: [filter] });
  const state = await api.client('GET', `/api/v1/client/${workspaceId}/environment`);
  const shown = state.json.data.data.surveys.find(({ id }: { id: string }) => id === data.id);
  t.match(shown, { triggers: [{ actionClass: { name: 'Cart opened' } }], delay: 3 });
  const segmentOf = async (userId: string, email: string) => {
    const user = await api.client('POST', `/api/v1/client/${workspaceId}/user`, {
      userId,
      attributes: { email },
    });
    return user.json.data.state.data.segments.includes(shown.segment.id);
  };
  t.equal(await segmentOf('jane', 'jane@example.com'), true);
  t.equal(await segmentOf('joe', 'joe@example.com'), false);

  const less = await patch(data.id, { distribution: { triggers: [{ actionClassId }] } });
  t.match(less.json.data, {
    distribution: { displayOption: 'displayOnce', delay: 0, triggers: [{ actionClassId }] },
    targeting: { filters: [filter] },
  });
  const everybody = await patch(data.id, { targeting: { filters: [] } });
  t.strictSame(everybody.json.data.targeting, { filters: [] });
  t.equal(await segmentOf('joe', 'joe@example.com'), true);
});

t.test('200: targeting does not change a segment that several surveys use', async (t) => {
  const segment = await api.manage('POST', '/api/v1/management/segments', { workspaceId, title: 'Shared' });
  const survey = await addSurvey(api, { type: 'app', status: 'draft', segmentId: segment.json.data.id });
  const filters = [equals({ type: 'person', personIdentifier: 'userId' }, 'jane')];
  const reply = await patch(survey.id, { targeting: { filters } });
  t.strictSame(reply.json.data.targeting, { filters });
  const shared = await api.manage('GET', `/api/v1/management/segments/${segment.json.data.id}`);
  t.strictSame(shared.json.data.filters, []);
  t.strictSame(shared.json.data.surveys, []);
});

t.test('200: a patch replaces each part that it names, and keeps the others', async (t) => {
  const data = await created({ hiddenFields: { enabled: true, fieldIds: ['h1'] }, status: 'draft' });
  api.advance(1000);
  const named = await patch(data.id, { name: 'Other', status: 'paused' });
  t.equal(named.status, 200);
  t.strictSame(named.json.data, {
    ...data,
    name: 'Other',
    status: 'paused',
    updatedAt: new Date(api.context.clock()).toISOString(),
  });
  const [block] = data.blocks;
  const more = await patch(data.id, { blocks: [{ name: 'New', elements: [element('q2')] }, block] });
  t.equal(more.json.data.blocks[1].id, block.id, 'a block that stays keeps its id');
  t.not(more.json.data.blocks[0].id, block.id);
  t.strictSame(more.json.data.hiddenFields, data.hiddenFields);
  t.equal((await patch(data.id, {})).status, 200);
});

t.test('200: languages can be added and removed, the default stays', async (t) => {
  const data = await created();
  const added = await patch(data.id, {
    languages: [{ code: 'fr-FR', enabled: true }],
    metadata: { title: { 'en-US': 'Hi', 'fr-FR': 'Salut' } },
  });
  t.equal(added.status, 200, added.text);
  t.match(added.json.data, {
    defaultLanguage: 'en-US',
    languages: [
      { code: 'en-US', default: true },
      { code: 'fr-FR', default: false },
    ],
    metadata: { title: { 'fr-FR': 'Salut' } },
  });
  const removed = await patch(data.id, { languages: [] });
  t.strictSame(removed.json.data.languages, []);
  t.strictSame(
    removed.json.data.metadata,
    { title: { 'en-US': 'Hi' } },
    'only languages of the survey are shown',
  );
  t.equal((await patch(data.id, { metadata: removed.json.data.metadata })).status, 200);
  const other = await patch(data.id, { languages: [{ code: 'fr-FR', default: true, enabled: true }] });
  t.equal(other.status, 422);
  t.match(other.json.invalid_params, [{ name: 'languages.0.default', code: 'immutable_identifier' }]);
});

t.test('200: a survey of v1, with languages of the older format, can be read and written back', async (t) => {
  for (const code of ['en', 'de']) {
    await api.manage('POST', '/api/v1/management/languages', { workspaceId, code });
  }
  const survey = await addSurvey(api, {
    languages: [
      { language: 'en', default: true, enabled: true },
      { language: 'de', default: false, enabled: true },
    ],
    welcomeCard: { enabled: true, headline: 'Hi', html: 'Text' },
    questions: [
      {
        id: 'q1',
        type: 'openText',
        headline: { default: 'What?', de: 'Was?', fr: 'Quoi?' },
        logic: [
          {
            id: 'l1',
            conditions: {
              id: 'g1',
              connector: 'and',
              conditions: [
                { id: 'c1', leftOperand: { type: 'question', value: 'q1' }, operator: 'isSkipped' },
              ],
            },
            actions: [{ id: 'a1', objective: 'jumpToQuestion', target: 'q2' }],
          },
        ],
      },
      { id: 'q2', type: 'nps', headline: 'Score' },
    ],
    endings: [{ id: 'cend', type: 'endScreen', headline: 'Bye' }],
  });
  const { data } = (await api.manage('GET', `${url}/${survey.id}`)).json;
  t.strictSame(described.issues(data), {});
  t.strictSame(data.blocks[0].elements[0].headline, { en: 'What?', de: 'Was?' });
  t.strictSame(data.welcomeCard.subheader, { en: 'Text' });
  t.notOk('html' in data.welcomeCard);
  const [condition] = data.blocks[0].logic[0].conditions.conditions;
  t.strictSame(condition.leftOperand, { type: 'element', value: 'q1' });
  const back = await patch(survey.id, changeableOf(data));
  t.equal(back.status, 200, back.text);
  t.strictSame({ ...back.json.data, updatedAt: data.updatedAt }, data);
});

t.test('400: problem+json names fields of the wrong shape', async (t) => {
  const block = (more: object) => withElements(element('q1', more));
  const cases: readonly (readonly [Record<string, unknown>, string, string?])[] = [
    [{ name: '' }, 'name'],
    [{ name: undefined }, 'name'],
    [{ workspaceId: undefined }, 'workspaceId'],
    [{ workspaceId: 'NO' }, 'workspaceId'],
    [{ blocks: undefined }, 'blocks'],
    [{ blocks: [] }, 'blocks'],
    [{ blocks: [{ name: 'B', elements: [] }] }, 'blocks.0.elements'],
    [{ blocks: [{ elements: [element('q1')] }] }, 'blocks.0.name'],
    [{ blocks: [{ name: 'B', elements: [element('q1')], color: 1 }] }, 'blocks.0.color', 'unsupported_field'],
    [{ type: 'website' }, 'type'],
    [{ status: 'scheduled' }, 'status'],
    [{ defaultLanguage: 'english' }, 'defaultLanguage'],
    [{ languages: [{ code: 'en_US', enabled: true }] }, 'languages.0.code'],
    [{ languages: [{ code: 'en-US' }] }, 'languages.0.enabled'],
    [{ questions: [] }, 'questions', 'unsupported_field'],
    [{ segmentId: null }, 'segmentId', 'unsupported_field'],
    [{ welcomeCard: { headline: en('x') } }, 'welcomeCard.enabled'],
    [{ welcomeCard: { enabled: false, html: en('x') } }, 'welcomeCard.html', 'unsupported_field'],
    [{ endings: [{ id: 'e', type: 'redirectToUrl' }] }, 'endings.0.url'],
    [{ endings: [{ id: 'e', type: 'endScreen', url: 'x' }] }, 'endings.0.url', 'unsupported_field'],
    [{ endings: [{ id: 'e', type: 'other' }] }, 'endings.0.type'],
    [{ endings: ['x'] }, 'endings.0'],
    [block({ type: 'other' }), 'blocks.0.elements.0.type'],
    [block({ headline: 'plain' }), 'blocks.0.elements.0.headline'],
    [block({ headline: { 'en-US': 1 } }), 'blocks.0.elements.0.headline.en-US'],
    [block({ headline: undefined }), 'blocks.0.elements.0.headline'],
    [block({ color: 'red' }), 'blocks.0.elements.0.color', 'unsupported_field'],
    [block({ charLimit: { most: 3 } }), 'blocks.0.elements.0.charLimit.most', 'unsupported_field'],
    [{ type: 'app', distribution: { displayOption: 'never' } }, 'distribution.displayOption'],
    [{ type: 'app', distribution: { triggers: [{ id: 'x' }] } }, 'distribution.triggers.0.actionClassId'],
    [{ type: 'app', distribution: { speed: 1 } }, 'distribution.speed', 'unsupported_field'],
    [{ type: 'app', targeting: { filters: {} } }, 'targeting.filters'],
    [{ variables: [{ name: 'Not Good', type: 'text', value: '' }] }, 'variables.0.name'],
    [{ blocks: Array.from({ length: 1001 }, () => 1) }, 'blocks'],
  ];
  for (const [change, name, code] of cases) {
    const reply = await create(change);
    const label = `${name}: ${JSON.stringify(change).slice(0, 80)}`;
    t.equal(reply.status, 400, label);
    t.match(reply.headers['content-type'], 'application/problem+json');
    t.match(reply.json, { title: 'Bad Request', code: 'bad_request', detail: 'Invalid survey document' });
    const param = reply.json.invalid_params.find((one: { name: string }) => one.name === name);
    t.ok(param, `${label}: ${reply.text}`);
    if (code !== undefined) t.equal(param?.code, code, label);
  }
  for (const body of ['[]', '1', 'null', ''])
    t.equal((await api.manage('POST', url, body)).status, 400, body);
  const malformed = await api.manage('POST', url, '{');
  t.equal(malformed.status, 400);
  t.match(malformed.json.invalid_params, [
    { name: 'body', reason: 'Malformed JSON input, please check your request body' },
  ]);
});

t.test('400: logic in another format', async (t) => {
  const withLogic = (rule: unknown) => ({
    blocks: [{ id: 'b', name: 'B', elements: [element('q1')], logic: [rule] }],
  });
  const rule = (conditions: unknown, actions: unknown = []) => ({ id: 'l', conditions, actions });
  const group = (...conditions: unknown[]) => ({ id: 'g', connector: 'and', conditions });
  const at = 'blocks.0.logic.0';
  const cases: readonly (readonly [unknown, string])[] = [
    [{ id: 'l' }, `${at}.conditions`],
    [rule({ connector: 'xor', conditions: [] }), `${at}.conditions.connector`],
    [
      rule(group({ leftOperand: { type: 'question', value: 'q1' }, operator: 'isSet' })),
      `${at}.conditions.conditions.0.leftOperand.type`,
    ],
    [
      rule(group({ leftOperand: { type: 'element', value: 'q1' }, operator: 'is' })),
      `${at}.conditions.conditions.0.operator`,
    ],
    [rule(group(), [{ objective: 'jumpToQuestion', target: 'q1' }]), `${at}.actions.0.objective`],
    [rule(group(), [{ objective: 'jumpToBlock' }]), `${at}.actions.0.target`],
    [
      rule(group(), [{ objective: 'calculate', variableId: 'v', operator: 'root' }]),
      `${at}.actions.0.operator`,
    ],
  ];
  for (const [logic, name] of cases) {
    const reply = await create(withLogic(logic));
    t.equal(reply.status, 400, name);
    t.ok(
      reply.json.invalid_params.some((one: { name: string }) => one.name === name),
      `${name}: ${reply.text}`,
    );
  }
});

t.test('422: parts that contradict each other, each with its code', async (t) => {
  const choice = (id: string) => ({ id, label: en('x') });
  const toThose = (root: object, operator: string) => ({
    type: 'app',
    targeting: {
      filters: [{ id: 'f', connector: null, resource: { id: 'r', root, qualifier: { operator } } }],
    },
  });
  const cases: readonly (readonly [Record<string, unknown>, Record<string, unknown>])[] = [
    [
      withElements(element('q1'), element('q1')),
      {
        name: 'blocks.0.elements.1.id',
        code: 'duplicate_identifier',
        identifier: 'q1',
        firstUsedAt: 'blocks.0.elements.0.id',
      },
    ],
    [
      {
        blocks: [
          { id: 'b', name: 'B', elements: [element('q1')] },
          { id: 'b', name: 'C', elements: [element('q2')] },
        ],
      },
      { name: 'blocks.1.id', code: 'duplicate_identifier', identifier: 'b', firstUsedAt: 'blocks.0.id' },
    ],
    [
      { hiddenFields: { enabled: true, fieldIds: ['q1'] } },
      {
        name: 'hiddenFields.fieldIds.0',
        code: 'duplicate_identifier',
        firstUsedAt: 'blocks.0.elements.0.id',
      },
    ],
    [
      withElements(element('userId')),
      { name: 'blocks.0.elements.0.id', code: 'forbidden_identifier', identifier: 'userId' },
    ],
    [
      withElements(element('q1', { headline: { 'de-DE': 'Was?' } })),
      { name: 'blocks.0.elements.0.headline', code: 'missing_translation', identifier: 'en-US' },
    ],
    [
      withElements(element('q1', { headline: { ...en('What?'), 'de-DE': 'Was?' } })),
      { name: 'blocks.0.elements.0.headline.de-DE', code: 'unsupported_locale', identifier: 'de-DE' },
    ],
    [
      { metadata: { title: { default: 'x', ...en('x') } } },
      { name: 'metadata.title.default', code: 'unsupported_locale' },
    ],
    [
      {
        languages: [
          { code: 'es-ES', enabled: true },
          { code: 'es-ES', enabled: true },
        ],
      },
      { name: 'languages.1.code', code: 'duplicate_locale', firstUsedAt: 'languages.0.code' },
    ],
    [
      { languages: [{ code: 'tlh', enabled: true }] },
      { name: 'languages.0.code', code: 'invalid_locale', identifier: 'tlh' },
    ],
    [
      { defaultLanguage: 'en-US', languages: [{ code: 'es-ES', default: true, enabled: true }] },
      { name: 'languages.0.default', code: 'invalid_locale', conflictsWith: 'defaultLanguage' },
    ],
    [{ welcomeCard: { enabled: true } }, { name: 'welcomeCard.headline', code: 'missing_required_field' }],
    [{ distribution: {} }, { name: 'distribution', code: 'unsupported_field' }],
    [{ targeting: { filters: [] } }, { name: 'targeting', code: 'unsupported_field' }],
    [
      { type: 'app', distribution: { triggers: [{ actionClassId: 'gone' }] } },
      { name: 'distribution.triggers.0.actionClassId', code: 'dangling_reference', missingId: 'gone' },
    ],
    [toThose({ type: 'moon' }, 'equals'), { name: 'targeting.filters.0.resource.root.type' }],
    [
      toThose({ type: 'surveyInteraction' }, 'haveSeen'),
      { name: 'targeting.filters.0.resource.root.type', code: 'unsupported_field' },
    ],
    [{ variables: [{ name: 'score', type: 'number', value: 'x' }] }, { name: 'variables.0.value' }],
    [
      withElements(element('q1', { type: 'multipleChoiceMulti', choices: [choice('a'), choice('a')] })),
      { name: 'blocks.0.elements.0.choices' },
    ],
    [
      { blocks: [{ name: 'B', elements: [element('q1')], logicFallback: 'gone' }] },
      {
        name: 'blocks.0.logicFallback',
        code: 'dangling_reference',
        referenceType: 'block',
        missingId: 'gone',
      },
    ],
  ];
  for (const [change, param] of cases) {
    const reply = await create(change);
    t.equal(reply.status, 422, `${param.name}: ${reply.text}`);
    t.match(reply.json, {
      title: 'Unprocessable Content',
      code: 'unprocessable_content',
      detail: 'Survey document failed validation',
      requestId: reply.headers['x-request-id'],
    });
    const found = reply.json.invalid_params.find(({ name }: { name: string }) => name === param.name);
    t.match(found, { reason: String, ...param }, reply.text);
  }
});

t.test('422: logic with a missing target, also when a patch removes the target', async (t) => {
  const logic = (target: string, operand: object) => [
    {
      id: 'l',
      conditions: {
        id: 'g',
        connector: 'and',
        conditions: [{ id: 'c', leftOperand: operand, operator: 'isSet' }],
      },
      actions: [{ id: 'a', objective: 'jumpToBlock', target }],
    },
  ];
  const blocks = (target: string, operand: object) => [
    { id: 'b', name: 'B', elements: [element('q1')], logic: logic(target, operand) },
  ];
  const hidden = { type: 'hiddenField', value: 'h1' };
  const hiddenFields = { enabled: true, fieldIds: ['h1'] };
  const broken = await create({ blocks: blocks('gone', { type: 'variable', value: 'v' }) });
  t.equal(broken.status, 422);
  t.match(broken.json.invalid_params, [
    {
      name: 'blocks.0.logic.0.conditions.conditions.0.leftOperand.value',
      referenceType: 'variable',
      missingId: 'v',
    },
    {
      name: 'blocks.0.logic.0.actions.0.target',
      code: 'dangling_reference',
      referenceType: 'block',
      missingId: 'gone',
    },
  ]);
  const { id } = await created({ blocks: blocks('b', hidden), hiddenFields });
  const taken = await patch(id, { hiddenFields: { enabled: false } });
  t.equal(taken.status, 422);
  t.match(taken.json.invalid_params, [{ referenceType: 'hiddenField', missingId: 'h1' }]);
  t.equal((await patch(id, { name: 'Fine' })).status, 200);
});

t.test('400: fields that a patch cannot change', async (t) => {
  const { id } = await created();
  for (const change of [
    { workspaceId },
    { type: 'app' },
    { defaultLanguage: 'de-DE' },
    { id: 'x' },
    { slug: 'x' },
  ]) {
    const reply = await patch(id, change);
    t.equal(reply.status, 400, JSON.stringify(change));
    t.match(reply.json.invalid_params, [{ name: Object.keys(change)[0], code: 'unsupported_field' }]);
  }
  t.equal((await patch(id, { blocks: [] })).status, 400);
  t.equal((await patch(id, { name: null })).status, 400);
});

t.test('204: deletes everything of the survey', async (t) => {
  const { id } = await created({
    type: 'app',
    status: 'inProgress',
    distribution: { triggers: [{ actionClassId }] },
  });
  const client = `/api/v1/client/${workspaceId}`;
  await api.client('POST', `${client}/responses`, { surveyId: id, data: { q1: 'x' }, finished: true });
  const reply = await api.manage('DELETE', `${url}/${id}`);
  t.equal(reply.status, 204);
  t.equal(reply.text, '');
  t.equal((await api.manage('GET', `${url}/${id}`)).status, 403);
  t.equal((await api.manage('DELETE', `${url}/${id}`)).status, 403);
  for (const table of ['responses', 'surveyTriggers'] as const) {
    const rows = await db.selectFrom(table).selectAll().where('surveyId', '=', id).execute();
    t.strictSame(rows, [], table);
  }
  t.strictSame(await db.selectFrom('segments').select('id').where('title', '=', id).execute(), []);
  const state = await api.client('GET', `${client}/environment`);
  t.notMatch(state.text, id);
});

t.test('200: an archived survey is hidden, accepts no responses, and can be restored', async (t) => {
  const { id } = await created({
    type: 'app',
    status: 'inProgress',
    distribution: { triggers: [{ actionClassId }] },
  });
  const client = `/api/v1/client/${workspaceId}`;
  const answer = { surveyId: id, data: { q1: 'x' }, finished: false };
  const before = await api.client('POST', `${client}/responses`, answer);
  api.advance(1000);
  const now = new Date(api.context.clock()).toISOString();
  const reply = await api.manage('POST', `${url}/${id}/archive`);
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { data: { id, status: 'inProgress', archivedAt: now } });
  api.advance(1000);
  const again = await api.manage('POST', `${url}/${id}/archive`);
  t.strictSame(again.json, reply.json, 'a second call changes nothing');
  const { data } = (await api.manage('GET', `${url}/${id}`)).json;
  t.match(data, { status: 'inProgress', archivedAt: now, updatedAt: now });

  const ids = async (query = '') =>
    (await api.manage('GET', `${url}?workspaceId=${workspaceId}&limit=100${query}`)).json.data.map(
      (survey: { id: string }) => survey.id,
    );
  t.notOk((await ids()).includes(id));
  t.notOk((await ids('&filter[status][in]=inProgress')).includes(id));
  t.strictSame(await ids('&filter[status][in]=archived'), [id]);
  const v1 = (await api.manage('GET', '/api/v1/management/surveys')).json.data;
  t.match(
    v1.find((survey: { id: string }) => survey.id === id),
    { archivedAt: now },
    'v1 lists it with its date',
  );

  t.notMatch((await api.client('GET', `${client}/environment`)).text, id);
  for (const [method, path, body] of [
    ['POST', `${client}/responses`, answer],
    ['POST', `/api/v2/client/${workspaceId}/responses`, answer],
    ['PUT', `${client}/responses/${before.json.data.id}`, { finished: true }],
    ['POST', `${client}/displays`, { surveyId: id }],
  ] as const) {
    const refused = await api.client(method, path, body);
    t.equal(refused.status, 403, path);
    t.match(refused.json, { message: 'Survey is not accepting submissions', details: { surveyId: id } });
  }
  const recorded = await api.manage('POST', '/api/v1/management/responses', { ...answer, finished: true });
  t.equal(recorded.status, 200, 'the management API still accepts responses');
  for (const change of [
    await patch(id, { name: 'x' }),
    await api.manage('PUT', `/api/v1/management/surveys/${id}`, { name: 'x' }),
  ]) {
    t.equal(change.status, 400);
    t.match(change.text, 'restore it before changing it');
  }

  const back = await api.manage('POST', `${url}/${id}/restore`);
  t.strictSame(back.json, { data: { id, status: 'inProgress', archivedAt: null } });
  t.strictSame((await api.manage('POST', `${url}/${id}/restore`)).json, back.json);
  t.match((await api.client('GET', `${client}/environment`)).text, id);
  t.equal((await api.client('POST', `${client}/responses`, answer)).status, 200);
  t.equal((await patch(id, { name: 'x' })).status, 200);
});

t.test('400: a link of an archived survey cannot be mailed', async (t) => {
  const { id } = await addSurvey(api, { type: 'link' });
  await api.manage('POST', `${url}/${id}/archive`);
  const mail = await api.manage('POST', `/api/v1/management/surveys/${id}/link-emails`, {
    email: 'a@example.com',
  });
  t.equal(mail.status, 400);
  t.match(mail.json.message, 'restore it first');
});

t.test('403: without write, for another workspace, for an unknown survey', async (t) => {
  const { id } = await created();
  const reader = { 'x-api-key': await api.addKey({ [workspaceId]: 'read' }) };
  const writer = { 'x-api-key': await api.addKey({ [workspaceId]: 'write' }) };
  const stranger = { 'x-api-key': await api.addKey({ ws2: 'manage' }) };
  const calls = (survey: string) =>
    [
      ['POST', url, document()],
      ['PATCH', `${url}/${survey}`, { name: 'x' }],
      ['POST', `${url}/${survey}/archive`, undefined],
      ['POST', `${url}/${survey}/restore`, undefined],
      ['POST', `${url}/validate`, { operation: 'create', data: document() }],
      ['POST', `${url}/validate`, { operation: 'patch', surveyId: survey, data: {} }],
      ['DELETE', `${url}/${survey}`, undefined],
    ] as const;
  for (const headers of [reader, stranger]) {
    for (const [method, path, body] of calls(id)) {
      const reply = await api.client(method, path, body, headers);
      t.equal(reply.status, 403, `${method} ${path}`);
      t.match(reply.json, { code: 'forbidden', detail: 'You are not authorized to access this resource' });
    }
  }
  for (const [method, path, body] of calls('unknown').slice(1, 4)) {
    t.equal((await api.manage(method, path, body)).status, 403, path);
  }
  t.equal((await api.manage('POST', url, document({ workspaceId: 'unknown' }))).status, 403);
  for (const [method, path, body] of calls(id)) {
    const { status } = await api.client(method, path, body, writer);
    t.ok(status < 300, `write is enough for ${method} ${path}: ${status}`);
  }
  t.equal((await api.client('POST', url, document())).status, 401);
  t.equal((await api.manage('PATCH', `${url}/NO`, {})).json.detail, 'Invalid route parameters');
});

t.test('201: with a session, from our own pages only', async (t) => {
  const browser = await logInOwner(api);
  const reply = await browser.call('POST', url, document({ name: 'By hand' }), { origin: publicUrl });
  t.equal(reply.status, 201, reply.text);
  const list = await browser.call('GET', `${url}?workspaceId=${workspaceId}&filter[name][contains]=By hand`);
  t.match(list.json.data, [{ id: reply.json.data.id, creator: { name: String } }]);
  const foreign = await browser.call('POST', url, document(), { origin: 'https://evil.example' });
  t.equal(foreign.status, 403);
});

t.test('the id for older clients is a workspace id', async (t) => {
  const key = { 'x-api-key': await api.addKey({ ws2: 'write' }) };
  const reply = await api.client('POST', url, document({ workspaceId: 'env2' }), key);
  t.equal(reply.status, 201);
  t.equal(reply.json.data.workspaceId, 'ws2');
});

t.test('two concurrent patches keep each other’s changes', async (t) => {
  const { id } = await created();
  const replies = await Promise.all([patch(id, { name: 'Both' }), patch(id, { status: 'paused' })]);
  t.strictSame(column(replies, 'status'), [200, 200]);
  t.match((await api.manage('GET', `${url}/${id}`)).json.data, { name: 'Both', status: 'paused' });
});

t.test('two concurrent patches add one language once', async (t) => {
  const more = { languages: [{ code: 'it-IT', enabled: true }] };
  const replies = await Promise.all([create(more), create(more)]);
  t.strictSame(column(replies, 'status'), [201, 201]);
  const rows = await db.selectFrom('languages').select('id').where('code', '=', 'it-IT').execute();
  t.equal(rows.length, 1);
});

t.test('validate: reports the result and changes nothing', async (t) => {
  const count = async () => {
    const tables = ['surveys', 'languages', 'segments', 'surveyTriggers'] as const;
    return Promise.all(
      tables.map(async (table) => (await db.selectFrom(table).selectAll().execute()).length),
    );
  };
  const survey = await created();
  const validate = (body: unknown) => api.manage('POST', `${url}/validate`, body);
  const before = await count();
  const good = await validate({
    operation: 'create',
    data: document({
      type: 'app',
      languages: [{ code: 'pt-BR', enabled: true }],
      targeting: { filters: [] },
    }),
  });
  t.equal(good.status, 200, good.text);
  t.strictSame(good.json, {
    data: {
      valid: true,
      operation: 'create',
      invalid_params: [],
      languages: [
        { code: 'en-US', default: true, enabled: true },
        { code: 'pt-BR', default: false, enabled: true },
      ],
    },
  });
  const shape = await validate({ operation: 'create', data: { workspaceId, name: 'x', extra: 1 } });
  t.equal(shape.status, 200);
  t.match(shape.json.data, {
    valid: false,
    operation: 'create',
    invalid_params: [
      { name: 'blocks', reason: 'Required' },
      { name: 'extra', code: 'unsupported_field' },
    ],
  });
  const meaning = await validate({ operation: 'create', data: document({ distribution: {} }) });
  t.match(meaning.json.data, {
    valid: false,
    invalid_params: [{ name: 'distribution', code: 'unsupported_field' }],
  });
  const patched = await validate({ operation: 'patch', surveyId: survey.id, data: { name: 'Other' } });
  t.match(patched.json.data, { valid: true, operation: 'patch', invalid_params: [] });
  const fixed = await validate({ operation: 'patch', surveyId: survey.id, data: { type: 'app' } });
  t.match(fixed.json.data, { valid: false, invalid_params: [{ name: 'type', code: 'unsupported_field' }] });
  const dangling = await validate({
    operation: 'create',
    data: document({ type: 'app', distribution: { triggers: [{ actionClassId: 'gone' }] } }),
  });
  t.match(dangling.json.data, { valid: false, invalid_params: [{ code: 'dangling_reference' }] });
  t.strictSame(await count(), before, 'nothing is written');
  t.equal((await api.manage('GET', `${url}/${survey.id}`)).json.data.name, 'Survey');
  for (const body of [
    {},
    { operation: 'delete', data: {} },
    { operation: 'patch', data: {} },
    { operation: 'create', surveyId: survey.id, data: document() },
    { operation: 'create', data: [] },
    { operation: 'create', data: document(), more: 1 },
  ]) {
    const refused = await validate(body);
    t.equal(refused.status, 400, JSON.stringify(body).slice(0, 60));
    t.equal(refused.json.detail, 'Invalid request body');
  }
});

t.test('400: refuses a survey of the maximum size, and a deeply nested one, quickly', async (t) => {
  const reply = await create(withElements(element('q1', { headline: en('x'.repeat(1_100_000)) })));
  t.equal(reply.status, 400);
  t.match(reply.json.invalid_params[0].reason, 'bytes');
  const many = Array.from({ length: 1001 }, (_, i) => element(`q${i}`));
  t.equal((await create(withElements(...many))).status, 400);
  const triggers = Array.from({ length: 1001 }, () => ({ actionClassId }));
  t.match((await create({ type: 'app', distribution: { triggers } })).json.invalid_params, [
    { name: 'distribution.triggers' },
  ]);
});

t.test('reports a bounded number of mistakes', async (t) => {
  const many = <T>(item: (i: number) => T) => Array.from({ length: 5_000 }, (_, i) => item(i));
  const block = (more: object) => ({ blocks: [{ id: 'b', name: 'B', elements: [element('q1')], ...more }] });
  const rule = (conditions: unknown[]) => ({
    id: 'l',
    conditions: { connector: 'and', conditions },
    actions: [],
  });
  const operand = { type: 'element', value: 'gone' };
  for (const [status, change] of [
    [400, block({ logic: [rule(many(() => ({})))] })],
    [400, { endings: many(() => ({ type: 'x' })).slice(0, 1_000) }],
    [400, block({ elements: many(() => ({ type: 'nps' })).slice(0, 1_000) })],
    [422, block({ logic: [rule(many(() => ({ leftOperand: operand, operator: 'isSet' })))] })],
    [422, { metadata: { title: Object.fromEntries(many((i) => [`x${i}`, ''])) } }],
  ] as const) {
    const reply = await create(change);
    t.equal(reply.status, status, reply.text.slice(0, 300));
    t.equal(reply.json.invalid_params.length, 50);
  }
});
