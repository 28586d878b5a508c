import t from 'tap';
import { ApiError } from '#api/errors.ts';
import { readContent } from '#api/resources/surveys/content.ts';

let count = 0;
const newId = (): string => {
  count += 1;
  return `c${count}`;
};
const read = (fields: Record<string, unknown>) =>
  readContent(
    { name: 'x', questions: [{ id: 'q1', type: 'openText', headline: 'Q' }], ...fields },
    null,
    newId,
  );
const questionOf = (question: Record<string, unknown>) =>
  read({ questions: [{ id: 'q1', headline: 'Q', ...question }] }).blocks[0]?.elements[0];

function fieldsRefused(fields: Record<string, unknown>): Record<string, unknown> {
  try {
    read(fields);
    return {};
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_fields') return error.details;
    throw error;
  }
}

const choices = [
  { id: 'a', label: 'A' },
  { id: 'b', label: { default: 'B', de: 'Be' } },
];
const part = { show: true, required: false, placeholder: 'P' };
const pictures = [
  { id: 'a', imageUrl: 'https://x.example/a.PNG' },
  { id: 'b', imageUrl: '/storage/ws1/public/b.webp' },
];

/** The required fields of each type, and no others. */
const smallest: Readonly<Record<string, Record<string, unknown>>> = {
  openText: {},
  multipleChoiceSingle: { choices },
  multipleChoiceMulti: { choices, shuffleOption: 'reverseOrderExceptLast', otherOptionPlaceholder: 'Other' },
  nps: { lowerLabel: 'no', upperLabel: 'yes', isColorCodingEnabled: true },
  cta: { buttonExternal: true, buttonUrl: 'https://x.example', dismissButtonLabel: 'Skip' },
  rating: { scale: 'smiley', range: 10 },
  csat: { scale: 'star', range: 5 },
  ces: { scale: 'number', range: 7 },
  consent: { label: 'I agree', html: '<b>x</b>' },
  pictureSelection: { choices: pictures },
  cal: { calUserName: 'me' },
  date: { format: 'y-M-d' },
  fileUpload: { allowMultipleFiles: true, maxSizeInMB: 5, allowedFileExtensions: ['pdf'] },
  matrix: { rows: choices, columns: choices },
  address: { addressLine1: part, addressLine2: part, city: part, state: part, zip: part, country: part },
  contactInfo: { firstName: part, lastName: part, email: part, phone: part, company: part },
  ranking: { choices },
};
for (const [type, fields] of Object.entries(smallest)) {
  t.test(`accepts ${type}`, async (t) => {
    const element = questionOf({ type, ...fields });
    t.match(element, { id: 'q1', type, headline: { default: 'Q' }, required: true });
    t.strictSame(
      Object.keys(fields).filter((name) => !Object.hasOwn(element ?? {}, name)),
      [],
    );
  });
}

/** Missing fields and values for which a type is refused. */
const refusedQuestions: readonly (readonly [type: string, fields: Record<string, unknown>, path: string])[] =
  [
    ['openText', { inputType: 'colour' }, 'inputType'],
    ['openText', { headline: undefined }, 'headline'],
    ['openText', { headline: { de: 'only' } }, 'headline.default'],
    ['openText', { id: 'a b' }, 'id'],
    ['openText', { id: 'UserID' }, 'id'],
    ['openText', { id: 'constructor' }, 'id'],
    ['openText', { required: 'yes' }, 'required'],
    ['openText', { charLimit: { max: -1 } }, 'charLimit.max'],
    ['multipleChoiceSingle', {}, 'choices'],
    ['multipleChoiceSingle', { choices: [choices[0]] }, 'choices'],
    ['multipleChoiceSingle', { choices, shuffleOption: 'some' }, 'shuffleOption'],
    ['multipleChoiceMulti', { choices: [{ id: 'a' }, choices[1]] }, 'choices.0.label'],
    ['rating', { scale: 'star', range: 8 }, 'range'],
    ['rating', { range: 5 }, 'scale'],
    ['csat', { scale: 'star', range: 7 }, 'range'],
    ['ces', { scale: 'star', range: 6 }, 'range'],
    ['consent', {}, 'label'],
    ['cta', { buttonExternal: true }, 'buttonUrl'],
    ['pictureSelection', { choices: [{ id: 'a', imageUrl: 'x.svg' }, pictures[1]] }, 'choices.0.imageUrl'],
    ['cal', { calUserName: '' }, 'calUserName'],
    ['date', { format: 'd.m.y' }, 'format'],
    ['fileUpload', {}, 'allowMultipleFiles'],
    ['matrix', { rows: choices }, 'columns'],
    ['matrix', { rows: [{ id: 'r', label: '__proto__' }], columns: choices }, 'rows.0.label'],
    ['address', { addressLine1: part }, 'city'],
    ['contactInfo', { ...smallest.contactInfo, email: { show: 'yes' } }, 'email.show'],
    ['ranking', { choices: Array.from({ length: 26 }, (_, i) => ({ id: `${i}`, label: 'x' })) }, 'choices'],
    ['hologram', {}, 'type'],
  ];
for (const [type, fields, path] of refusedQuestions) {
  t.test(`${type} ${JSON.stringify(fields)} is refused at ${path}`, async (t) => {
    const refused = fieldsRefused({ questions: [{ id: 'q1', headline: 'Q', type, ...fields }] });
    t.ok(Object.hasOwn(refused, `questions.0.${path}`), JSON.stringify(refused));
  });
}

t.test('converts older spellings of questions', async (t) => {
  t.match(questionOf({ type: 'openText', charLimit: true }), { charLimit: { enabled: true } });
  t.match(questionOf({ type: 'matrix', rows: ['r'], columns: [{ default: 'c' }] }), {
    rows: [{ id: '0', label: { default: 'r' } }],
    columns: [{ id: '0', label: { default: 'c' } }],
  });
  t.notOk(Object.hasOwn(questionOf({ type: 'openText', imageUrl: null, unknown: 1 }) ?? {}, 'imageUrl'));
});

t.test('keeps what it does not know, as it was sent, but no unknown field of a survey', async (t) => {
  const unknown = { label: 'x', list: [{ label: 'y' }] };
  t.match(questionOf({ type: 'openText', unknown }), { unknown });
  const content = read({ unknown, endings: [{ id: 'e', type: 'endScreen', unknown }] });
  t.match(content.endings, [{ unknown }]);
  t.notOk('unknown' in content);
});

const refusedSurveys: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ name: '' }, 'name'],
  [{ name: undefined }, 'name'],
  [{ type: 'email' }, 'type'],
  [{ status: 'live' }, 'status'],
  [{ displayOption: 'always' }, 'displayOption'],
  [{ displayPercentage: 0 }, 'displayPercentage'],
  [{ displayPercentage: 101 }, 'displayPercentage'],
  [{ displayLimit: 1.5 }, 'displayLimit'],
  [{ autoComplete: 0 }, 'autoComplete'],
  [{ delay: -1 }, 'delay'],
  [{ pin: '123' }, 'pin'],
  [{ redirectUrl: 'x' }, 'redirectUrl'],
  [{ publishOn: 'tomorrow' }, 'publishOn'],
  [{ singleUse: { enabled: true } }, 'singleUse.isEncrypted'],
  [{ recaptcha: { enabled: true, threshold: 1 } }, 'recaptcha.threshold'],
  [{ hiddenFields: {} }, 'hiddenFields.enabled'],
  [{ hiddenFields: { enabled: true, fieldIds: ['q1'] } }, 'hiddenFields.fieldIds.0'],
  [{ hiddenFields: { enabled: true, fieldIds: ['source'] } }, 'hiddenFields.fieldIds.0'],
  [{ variables: [{ id: 'v', name: 'A', type: 'text', value: '' }] }, 'variables.0.name'],
  [{ welcomeCard: { enabled: true } }, 'welcomeCard.headline'],
  [{ endings: [{ id: 'e', type: 'fireworks' }] }, 'endings.0.type'],
  [{ endings: [{ id: 'e', type: 'endScreen', buttonLink: 'javascript:alert(1)' }] }, 'endings.0.buttonLink'],
  [{ endings: [{ id: 'e', type: 'redirectToUrl', url: ' java\tscript:alert(1)' }] }, 'endings.0.url'],
  [{ redirectUrl: 'javascript://x%0aalert(1)' }, 'redirectUrl'],
  [
    { questions: [{ id: 'q1', headline: 'Q', type: 'cta', buttonUrl: 'data:text/html,x' }] },
    'questions.0.buttonUrl',
  ],
  [
    {
      endings: [
        { id: 'e', type: 'endScreen' },
        { id: 'e', type: 'endScreen' },
      ],
    },
    'endings.1.id',
  ],
  [{ workspaceOverwrites: { brandColor: 'red' } }, 'workspaceOverwrites.brandColor'],
  [{ followUps: [{ id: 'f' }] }, 'followUps.0.name'],
  [{ slug: 'a b' }, 'slug'],
  [{ questions: 'x' }, 'questions'],
  [{ questions: [1] }, 'questions.0'],
  [
    {
      questions: [
        { id: 'a', type: 'nps', headline: 'x' },
        { id: 'a', type: 'nps', headline: 'x' },
      ],
    },
    'questions.1.id',
  ],
  [{ questions: undefined, blocks: [{ id: 'b', name: 'B', elements: [] }] }, 'blocks.0.elements'],
  [
    { questions: undefined, blocks: [{ name: 'B', elements: [{ id: 'a', type: 'nps' }] }] },
    'blocks.0.elements.0.headline',
  ],
];
for (const [fields, path] of refusedSurveys) {
  t.test(`${JSON.stringify(fields)} is refused at ${path}`, async (t) => {
    const refused = fieldsRefused(fields);
    t.ok(Object.hasOwn(refused, path), JSON.stringify(refused));
  });
}

t.test('a missing field gets the message Required', async (t) => {
  t.equal(fieldsRefused({ hiddenFields: {} })['hiddenFields.enabled'], 'Required');
});

t.test('the number of findings is bounded', async (t) => {
  const questions = Array.from({ length: 500 }, () => ({ type: 'rating' }));
  t.equal(Object.keys(fieldsRefused({ questions })).length, 50);
});

t.test('accepts dates in many formats and returns them in one', async (t) => {
  t.equal(read({ closeOn: '2026-05-06T07:08:09+02:00' }).closeOn, '2026-05-06T05:08:09.000Z');
});

t.test('keeps style keys as given', async (t) => {
  const styling = { overwriteThemeStyling: true, newestKey: { light: '#fff' } };
  t.strictSame(read({ styling }).styling, styling);
});
