/** Every route checks answers against their questions, and accepts what real renderers send. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const v1 = `/api/v1/client/${workspaceId}/responses`;
const v2 = `/api/v2/client/${workspaceId}/responses`;
const management = '/api/v1/management/responses';

const choices = [
  { id: 'a', label: { default: 'Apple', de: 'Apfel' } },
  { id: 'b', label: { default: 'Pear', de: 'Birne ' } },
];
const withOther = [...choices, { id: 'other', label: 'Other' }];
const shown = { show: true, required: false };
const parts = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, shown]));
const address = parts('addressLine1', 'addressLine2', 'city', 'state', 'zip', 'country');
const contactInfo = parts('firstName', 'lastName', 'email', 'phone', 'company');
const images = choices.map(({ id }) => ({ id, imageUrl: `https://x.example/${id}.png` }));
const lines = (...labels: readonly string[]) => labels.map((label, i) => ({ id: `i${i}`, label }));

const cases: readonly {
  readonly name: string;
  readonly question: Record<string, unknown>;
  readonly good: readonly unknown[];
  readonly bad: readonly unknown[];
}[] = [
  {
    name: 'text',
    question: { type: 'openText' },
    good: ['x', '', 7, ['older', 'documents']],
    bad: [{ a: 'b' }],
  },
  {
    name: 'text of some length',
    question: { type: 'openText', charLimit: { enabled: true, min: 2, max: 4 } },
    good: ['ab', 'abcd', ''],
    bad: ['a', 'abcde'],
  },
  {
    name: 'email',
    question: { type: 'openText', inputType: 'email' },
    good: ['me@example.com', ' me@example.com ', ''],
    bad: ['me', 'me@', 'a b@example.com', 7],
  },
  {
    name: 'url',
    question: { type: 'openText', inputType: 'url' },
    good: ['https://example.com/x?y=1'],
    bad: ['example', 'not a url'],
  },
  {
    name: 'number',
    question: { type: 'openText', inputType: 'number' },
    good: [0, -1.5, '12', '-3.5', '1e5', ' 7 '],
    bad: ['seven', '0x10', '1e999', '1,5', '--1'],
  },
  {
    name: 'phone',
    question: { type: 'openText', inputType: 'phone' },
    good: ['+41 (44) 123-45.67', '0176/1234', '112'],
    bad: ['call me', '+', '12a'],
  },
  {
    name: 'one choice',
    question: { type: 'multipleChoiceSingle', choices },
    good: ['Apple', 'Apfel', 'Birne', ['Pear'], ''],
    bad: ['Plum', 'apple', ['Apple', 'Pear'], { a: 'Apple' }, 3],
  },
  {
    name: 'one choice or another text',
    question: { type: 'multipleChoiceSingle', choices: withOther },
    good: ['Apple', 'Plum'],
    bad: [['Apple', 'Plum'], { a: 'b' }],
  },
  {
    name: 'several choices',
    question: { type: 'multipleChoiceMulti', choices },
    good: [['Apple', 'Birne'], [], ['Apple', ''], 'Pear'],
    bad: [['Apple', 'Plum'], 'Plum', { a: 'Apple' }, ['Apple', 'Apple', 'Apple'], ['Birne', 'Birne ']],
  },
  {
    name: 'several choices and another text',
    question: { type: 'multipleChoiceMulti', choices: withOther },
    // A respondent may type the label of another choice.
    good: [
      ['Apple', 'Plum'],
      ['Apple', 'Apple'],
    ],
    bad: [{ a: 'b' }, ['Plum', 'Plum'], ['Apple', 'Apple', 'Apple']],
  },
  {
    name: 'choices whose labels repeat an earlier answer',
    question: {
      type: 'multipleChoiceSingle',
      choices: [choices[0], { id: 'b', label: 'Like #recall:q0/fallback:x#' }],
    },
    good: ['Like pears'],
    bad: [{ a: 'b' }],
  },
  { name: 'nps', question: { type: 'nps' }, good: [0, 10, '7', ''], bad: [-1, 11, 7.5, 'seven', ['1', '2']] },
  {
    name: 'rating',
    question: { type: 'rating', scale: 'star', range: 5 },
    good: [1, 5, '3'],
    bad: [0, 6, 2.5, '6', 'five'],
  },
  { name: 'csat', question: { type: 'csat', scale: 'smiley', range: 5 }, good: [1, 5], bad: [0, 6] },
  { name: 'ces', question: { type: 'ces', scale: 'number', range: 7 }, good: [1, 7], bad: [8] },
  { name: 'cta', question: { type: 'cta' }, good: ['clicked', 'dismissed', ''], bad: ['maybe'] },
  {
    name: 'consent',
    question: { type: 'consent', label: 'I agree' },
    good: ['accepted', 'dismissed', ''],
    bad: ['yes'],
  },
  { name: 'cal', question: { type: 'cal', calUserName: 'me' }, good: ['booked', ''], bad: ['tomorrow'] },
  {
    name: 'one picture',
    question: { type: 'pictureSelection', choices: images },
    good: [['a'], 'b', []],
    bad: [['c'], ['a', 'b'], { a: 'b' }],
  },
  {
    name: 'pictures',
    question: { type: 'pictureSelection', choices: images, allowMulti: true },
    good: [['a', 'b']],
    bad: [
      ['a', 'Apple'],
      ['a', 'a'],
    ],
  },
  {
    name: 'date',
    question: { type: 'date', format: 'd-M-y' },
    good: ['2026-02-28', '2024-02-29', '2026-02-28T10:00:00.000Z', '2026-02-28T10:00:00+02:00'],
    bad: ['2026-02-30', '2026-13-01', '28-02-2026', 'soon', '2026-02-28T99:00:00Z', 20260228],
  },
  {
    name: 'one file',
    question: { type: 'fileUpload', allowMultipleFiles: false },
    good: [[`/storage/${workspaceId}/private/a.pdf`], ['skipped'], 'skipped', []],
    bad: [[`/storage/${workspaceId}/private/a.pdf`, `/storage/${workspaceId}/private/b.pdf`]],
  },
  {
    name: 'matrix',
    question: { type: 'matrix', rows: lines('Speed', 'Price'), columns: lines('Good', 'Bad') },
    good: [{ Speed: 'Good' }, { Speed: 'Good', Price: '' }, {}],
    bad: [{ Colour: 'Good' }, { Speed: 'Great' }, 'Good', ['Good']],
  },
  {
    name: 'matrix whose labels are names of JavaScript',
    question: { type: 'matrix', rows: lines('constructor', 'prototype'), columns: lines('toString') },
    good: [{ constructor: 'toString', prototype: 'toString' }, { constructor: '' }],
    bad: [{ toString: 'toString' }, { constructor: 'constructor' }],
  },
  {
    name: 'address',
    question: { type: 'address', ...address },
    good: [['1 Street', '', 'Town', '', '', ''], ['', '', '', '', '', ''], ['1 Street']],
    bad: ['1 Street', Array(7).fill('x'), { city: 'Town' }],
  },
  {
    name: 'contact data',
    question: { type: 'contactInfo', ...contactInfo },
    good: [['Jo', '', 'jo@example.com', 'whatever', ''], ['Jo']],
    bad: [['Jo', '', 'jo', '', ''], 'Jo'],
  },
  {
    name: 'ranking',
    question: { type: 'ranking', choices },
    good: [['Pear', 'Apfel'], ['b', 'a'], ['Apple'], []],
    bad: [['Plum'], ['Apple', 'Apple'], { a: 'Apple' }],
  },
  {
    name: 'ranking with another text',
    question: { type: 'ranking', choices: withOther },
    good: [['Plum', 'Apple']],
    bad: [['Plum', 'Plum']],
  },
];

for (const { name, question, good, bad } of cases) {
  t.test(`answers to: ${name}`, async (t) => {
    const survey = await addSurvey(api, {
      questions: [{ id: 'q', headline: 'Q', required: false, ...question }],
    });
    const send = (path: string, answer: unknown) => {
      const body = { surveyId: survey.id, finished: false, data: { q: answer } };
      return path === management ? api.manage('POST', path, body) : api.client('POST', path, body);
    };
    for (const path of [v1, v2, management]) {
      for (const answer of good) {
        const reply = await send(path, answer);
        t.equal(reply.status, 200, `${path} ${JSON.stringify(answer)} ${reply.text}`);
      }
      for (const answer of bad) {
        const reply = await send(path, answer);
        const about = `${path} ${JSON.stringify(answer)}`;
        t.equal(reply.status, 400, about);
        t.match(
          reply.json,
          { code: 'bad_request', message: 'Validation failed', details: { 'response.data.q': /^Give / } },
          about,
        );
      }
    }
  });
}

t.test('hidden fields, unknown ids and variables are not checked', async (t) => {
  const survey = await addSurvey(api, { hiddenFields: { enabled: true, fieldIds: ['campaign'] } });
  const reply = await api.client('POST', v1, {
    surveyId: survey.id,
    finished: true,
    data: { q1: 'x', campaign: 'spring', verifiedEmail: 'me@example.com', extra: ['a', 'b'] },
    variables: { score: 3 },
  });
  t.equal(reply.status, 200);
});

t.test('reports all mistakes at once', async (t) => {
  const survey = await addSurvey(api, {
    questions: [
      { id: 'q1', type: 'nps', headline: 'Q', required: true },
      { id: 'q2', type: 'openText', inputType: 'email', headline: 'Q', required: true },
      { id: 'q3', type: 'openText', headline: 'Q', required: true },
      { id: 'q4', type: 'openText', headline: 'Q', required: false },
    ],
  });
  const body = { surveyId: survey.id, finished: true, data: { q1: 11, q2: 'me', q3: '' } };
  for (const reply of [
    await api.client('POST', v1, body),
    await api.client('POST', v2, body),
    await api.manage('POST', management, body),
  ]) {
    t.equal(reply.status, 400);
    t.strictSame(reply.json, {
      code: 'bad_request',
      message: 'Validation failed',
      details: {
        'response.data.q1': 'Give a whole number from 0 to 10',
        'response.data.q2': 'Give an email address',
        'response.data.q3': 'This question needs an answer',
      },
    });
  }
});

const twoQuestions = [
  { id: 'q1', type: 'openText', headline: 'Q', required: true },
  { id: 'q2', type: 'openText', headline: 'Q', required: true },
];

t.test('a blank does not answer a required question, whatever its kind', async (t) => {
  const required = [
    [{ type: 'openText' }, ' \t\n\u00a0'],
    [{ type: 'multipleChoiceSingle', choices: withOther }, '  '],
    [{ type: 'multipleChoiceMulti', choices: withOther }, [' ', '']],
    [{ type: 'address', ...address, city: { show: true, required: true } }, ['1 Street', '', ' ']],
  ] as const;
  for (const [question, answer] of required) {
    const survey = await addSurvey(api, {
      questions: [{ id: 'q', headline: 'Q', required: true, ...question }],
    });
    const reply = await api.client('POST', v1, { surveyId: survey.id, finished: true, data: { q: answer } });
    t.equal(reply.status, 400, question.type);
    t.strictSame(reply.json.details, { 'response.data.q': 'This question needs an answer' });
  }
});

t.test('required answers may be missing until the response is finished', async (t) => {
  const survey = await addSurvey(api, { questions: twoQuestions });
  const made = await api.client('POST', v1, {
    surveyId: survey.id,
    finished: false,
    data: { q1: '' },
  });
  t.equal(made.status, 200);
  const one = `${v1}/${made.json.data.id}`;
  t.equal((await api.client('PUT', one, { data: { q1: 'a' }, finished: false })).status, 200);
  const early = await api.client('PUT', one, { finished: true });
  t.equal(early.status, 400);
  t.strictSame(early.json.details, { 'response.data.q2': 'This question needs an answer' });
  t.equal((await api.client('PUT', one, { finished: true, data: { q1: '', q2: 'b' } })).status, 400);
  t.equal((await api.client('PUT', one, { finished: true, data: { q2: 'b' } })).status, 200);

  const managed = `${management}/${made.json.data.id}`;
  t.equal((await api.manage('PUT', managed, { data: { q1: '' } })).status, 400, 'it cannot be removed');
  t.equal((await api.manage('PUT', managed, { data: { q1: 'c' } })).status, 200);
});

const jump = (target: string, objective = 'jumpToQuestion') => [
  {
    id: 'l1',
    conditions: { id: 'g', connector: 'and', conditions: [] },
    actions: [{ id: 'a', objective, target }],
  },
];
const three = (fields: object, fieldsOfSecond: object = {}) => [
  { ...twoQuestions[0], ...fields },
  { ...twoQuestions[1], ...fieldsOfSecond },
  { id: 'q3', type: 'openText', headline: 'Q', required: true },
];
const paths: readonly (readonly [
  name: string,
  questions: readonly object[],
  data: object,
  status: number,
])[] = [
  ['a jump past a question', three({ logic: jump('q3') }), { q1: 'a', q3: 'c' }, 200],
  ['a jump past another question', three({ logic: jump('q3') }), { q1: 'a', q2: 'b' }, 400],
  ['a jump to the end', three({ logic: jump('thanks') }), { q1: 'a' }, 200],
  ['the question that jumps', three({ logic: jump('thanks') }), {}, 400],
  ['a fallback past a question', three({ logicFallback: 'q3' }), { q1: 'a', q3: 'c' }, 200],
  ['a jump to the next', three({ logic: jump('q2') }), { q1: 'a', q3: 'c' }, 400],
  ['a jump back', three({}, { logic: jump('q1') }), { q1: 'a', q2: 'b' }, 400],
  ['logic that jumps nowhere', three({ logic: jump('q3', 'requireAnswer') }), { q1: 'a', q3: 'c' }, 400],
  [
    'logic as older surveys write it',
    three({ logic: [{ condition: 'skipped', destination: 'q3' }] }),
    { q1: 'a', q3: 'c' },
    200,
  ],
  ['logic that nobody knows', three({ logic: [{}] }), { q1: 'a' }, 200],
];
for (const [name, questions, data, status] of paths) {
  t.test(`${status}: a finished response and ${name}`, async (t) => {
    const survey = await addSurvey(api, {
      questions,
      endings: [{ id: 'thanks', type: 'endScreen', headline: 'Bye' }],
    });
    const reply = await api.client('POST', v1, { surveyId: survey.id, finished: true, data });
    t.equal(reply.status, status, reply.text);
  });
}

t.test('200: a link that starts in the middle, without the earlier questions', async (t) => {
  const survey = await addSurvey(api, { questions: twoQuestions });
  const meta = { url: `https://x.example/s/${survey.id}?startAt=q2` };
  const body = { surveyId: survey.id, finished: true, data: { q2: 'b' } };
  t.equal((await api.client('POST', v1, { ...body, meta })).status, 200);
  t.equal((await api.client('POST', v1, { ...body, meta: { url: 'https://x.example/' } })).status, 400);
  const made = await api.client('POST', v1, { ...body, meta, finished: false });
  t.equal((await api.client('PUT', `${v1}/${made.json.data.id}`, { finished: true })).status, 200);
});

t.test('200: a response that began before a question was added', async (t) => {
  const survey = await addSurvey(api, { questions: [twoQuestions[0]] });
  const made = await api.client('POST', v1, { surveyId: survey.id, finished: false, data: { q1: 'a' } });
  api.advance(1_000);
  const url = `/api/v1/management/surveys/${survey.id}`;
  t.equal((await api.manage('PUT', url, { questions: twoQuestions })).status, 200);
  t.equal((await api.client('PUT', `${v1}/${made.json.data.id}`, { finished: true })).status, 200);
  const fresh = await api.client('POST', v1, { surveyId: survey.id, finished: true, data: { q1: 'a' } });
  t.equal(fresh.status, 400);
});

const requiredCases: readonly (readonly [
  Record<string, unknown>,
  enough: readonly unknown[],
  tooLittle: readonly unknown[],
])[] = [
  [{ type: 'consent', label: 'I agree' }, ['accepted'], ['dismissed', '']],
  [{ type: 'cal', calUserName: 'me' }, ['booked'], ['dismissed', '']],
  [{ type: 'cta' }, ['clicked', 'dismissed', ''], []],
  [
    { type: 'fileUpload', allowMultipleFiles: true },
    [[`/storage/${workspaceId}/private/a.pdf`]],
    [['skipped'], 'skipped', []],
  ],
  [{ type: 'multipleChoiceMulti', choices }, [['Apple']], [[], ['']]],
  [
    { type: 'matrix', rows: lines('Speed'), columns: lines('Good') },
    [{ Speed: 'Good' }],
    [{}, { Speed: '' }],
  ],
  [
    { type: 'contactInfo', ...contactInfo, email: { show: true, required: true } },
    [['', '', 'jo@example.com', '', '']],
    [['Jo', '', '', '', ''], ['Jo']],
  ],
  [
    { type: 'address', ...address, zip: { show: false, required: true } },
    [['1 Street', '', '', '', '', '']],
    [['', '', '', '', '', '']],
  ],
  [{ type: 'nps' }, [0], ['']],
];
for (const [question, enough, tooLittle] of requiredCases) {
  t.test(`required: ${question.type}`, async (t) => {
    const survey = await addSurvey(api, {
      questions: [{ id: 'q', headline: 'Q', required: true, ...question }],
    });
    const send = (answer: unknown) =>
      api.client('POST', v1, { surveyId: survey.id, finished: true, data: { q: answer } });
    for (const answer of enough) t.equal((await send(answer)).status, 200, JSON.stringify(answer));
    for (const answer of tooLittle) {
      const reply = await send(answer);
      t.strictSame(
        reply.json.details,
        { 'response.data.q': 'This question needs an answer' },
        JSON.stringify(answer),
      );
    }
  });
}

t.test('400: a response without `finished` or `data`', async (t) => {
  const survey = await addSurvey(api);
  const bodies: readonly (readonly [object, object])[] = [
    [{}, { finished: 'Required', data: 'Required' }],
    [{ finished: true }, { data: 'Required' }],
    [{ data: {} }, { finished: 'Required' }],
  ];
  for (const [fields, details] of bodies) {
    const body = { surveyId: survey.id, ...fields };
    for (const reply of [
      await api.client('POST', v1, body),
      await api.client('POST', v2, body),
      await api.manage('POST', management, body),
    ]) {
      t.equal(reply.status, 400);
      t.strictSame(reply.json, {
        code: 'bad_request',
        message: 'Fields are missing or incorrectly formatted',
        details,
      });
    }
  }
});
