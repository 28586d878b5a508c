/** What the content of a survey may be. test/conversations/surveys.md has what is made of it. */
import t from 'tap';
import { ApiError } from '#api/errors.ts';
import { readContent } from '#api/resources/surveys/content.ts';
import { questionTypes } from '#api/resources/surveys/schema.ts';

const question = (fields: object) => ({ id: 'q1', type: 'openText', headline: 'Q', ...fields });
const read = (fields: object) => readContent({ name: 'x', questions: [question({})], ...fields }, null);

function refusals(fields: object): readonly string[] {
  try {
    read(fields);
    return [];
  } catch (error) {
    if (error instanceof ApiError && error.code === 'invalid_fields') return Object.keys(error.details);
    throw error;
  }
}

const choices = [{ id: 'a', label: 'A' }];
const needed: Readonly<Record<string, unknown>> = {
  ...{ choices, rows: choices, columns: choices, scale: 'star', range: 5, label: 'I agree' },
  ...{ format: 'y-M-d', allowMultipleFiles: true, calUserName: 'me' },
};
for (const [type, names] of Object.entries(questionTypes)) {
  t.test(`${type} is taken with ${names.join(', ') || 'a headline'}, and with nothing less`, async (t) => {
    const fields = Object.fromEntries(names.map((name) => [name, needed[name] ?? { show: true }]));
    t.strictSame(refusals({ questions: [question({ type, ...fields })] }), []);
    for (const name of names) {
      const { [name]: _, ...others } = fields;
      t.strictSame(refusals({ questions: [question({ type, ...others })] }), [`questions.0.${name}`]);
    }
  });
}

const refusedQuestions: readonly (readonly [fields: object, path: string])[] = [
  [{ type: 'hologram' }, 'type'],
  [{ headline: undefined }, 'headline'],
  [{ headline: { de: 'only' } }, 'headline.default'],
  [{ id: 'a b' }, 'id'],
  [{ required: 'yes' }, 'required'],
  [{ inputType: 'colour' }, 'inputType'],
  [{ shuffleOption: 'some' }, 'shuffleOption'],
  [{ choices: [{ label: 'x' }] }, 'choices.0.id'],
  [{ range: 8 }, 'range'],
  [{ scale: 'loud' }, 'scale'],
  [{ format: 'd.m.y' }, 'format'],
  [{ buttonUrl: 'data:text/html,x' }, 'buttonUrl'],
  [{ allowedFileExtensions: 'pdf' }, 'allowedFileExtensions'],
];

const endScreen = { id: 'e', type: 'endScreen' };
const nps = { id: 'a', type: 'nps', headline: 'x' };
const refused: readonly (readonly [fields: object, path: string])[] = [
  ...refusedQuestions.map(
    ([fields, path]) => [{ questions: [question(fields)] }, `questions.0.${path}`] as const,
  ),
  [{ name: '' }, 'name'],
  [{ name: undefined }, 'name'],
  [{ name: 'x'.repeat(1_001) }, 'name'],
  [{ type: 'email' }, 'type'],
  [{ status: 'live' }, 'status'],
  [{ displayOption: 'always' }, 'displayOption'],
  [{ displayPercentage: 101 }, 'displayPercentage'],
  [{ displayLimit: 1.5 }, 'displayLimit'],
  [{ autoComplete: 0 }, 'autoComplete'],
  [{ delay: -1 }, 'delay'],
  [{ pin: '123' }, 'pin'],
  [{ publishOn: 'tomorrow' }, 'publishOn'],
  [{ closeOn: 5 }, 'closeOn'],
  [{ singleUse: { enabled: true } }, 'singleUse.isEncrypted'],
  [{ hiddenFields: {} }, 'hiddenFields.enabled'],
  [{ hiddenFields: { enabled: true, fieldIds: ['q1'] } }, 'hiddenFields.fieldIds.0'],
  [{ variables: [{ id: 'v', name: 'A', type: 'text', value: '' }] }, 'variables.0.name'],
  [{ endings: [{ id: 'e', type: 'fireworks' }] }, 'endings.0.type'],
  [{ endings: [{ ...endScreen, buttonLink: 'javascript:alert(1)' }] }, 'endings.0.buttonLink'],
  [{ endings: [{ ...endScreen, url: ' java\tscript:alert(1)' }] }, 'endings.0.url'],
  [{ redirectUrl: 'javascript://x%0aalert(1)' }, 'redirectUrl'],
  [{ workspaceOverwrites: 'red' }, 'workspaceOverwrites'],
  [{ followUps: [{ id: 'f' }] }, 'followUps.0.name'],
  [{ slug: 'a b' }, 'slug'],
  [{ questions: 'x' }, 'questions'],
  [{ questions: [1] }, 'questions.0'],
  [{ questions: [nps, nps] }, 'questions.1.id'],
  [{ questions: undefined, blocks: [{ id: 'b', name: 'B', elements: [] }] }, 'blocks.0.elements'],
  [
    { questions: undefined, blocks: [{ id: 'b', name: 'B', elements: [{ ...nps, headline: null }] }] },
    'blocks.0.elements.0.headline',
  ],
  [
    { questions: undefined, blocks: [{ id: 'b', name: 'B', elements: [nps, nps] }] },
    'blocks.0.elements.1.id',
  ],
];
for (const [fields, path] of refused) {
  t.test(`${JSON.stringify(fields).slice(0, 150)} is refused at ${path}`, async (t) => {
    t.ok(refusals(fields).includes(path), refusals(fields).join());
  });
}

t.test('the size, the number of questions and the number of findings are bounded', async (t) => {
  t.strictSame(refusals({ metadata: { x: 'x'.repeat(1_048_576) } }), ['body']);
  const many = Array.from({ length: 1_001 }, (_, i) => ({ id: `q${i}`, type: 'rating', headline: 'x' }));
  t.strictSame(refusals({ questions: many }), ['questions']);
  t.equal(refusals({ questions: many.slice(0, 500) }).length, 50);
});
