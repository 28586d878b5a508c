/** What the content of a survey may be. test/conversations/surveys.md has what is made of it. */
import { join } from 'node:path';
import t from 'tap';
import { ApiError } from '#api/errors.ts';
import { readContent } from '#api/resources/surveys/content.ts';
import { questionTypes } from '#api/resources/surveys/schema.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';

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

/** The fields of a survey with the fields of a case, by the headings of content.md. */
const surveysWith: Readonly<Record<string, (fields: object) => object>> = {
  'A question with wrong fields': (fields) => ({ questions: [question(fields)] }),
  'A survey with wrong fields': (fields) => fields,
  'Blocks instead of questions': (fields) => ({ questions: undefined, ...fields }),
};
for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'content.md'))) {
  t.test(heading, async (t) => {
    for (const [fields = '', path = ''] of cases) {
      const found = refusals(surveysWith[heading]?.(JSON.parse(fields)) ?? {});
      const at = heading === 'A question with wrong fields' ? `questions.0.${path}` : path;
      t.ok(found.includes(at), `${fields}: ${found.join()}`);
    }
  });
}

t.test('a name and a headline are needed', async (t) => {
  t.strictSame(refusals({ name: undefined }), ['name']);
  t.strictSame(refusals({ name: 'x'.repeat(1_001) }), ['name']);
  t.strictSame(refusals({ questions: [question({ headline: undefined })] }), ['questions.0.headline']);
});

t.test('the size, the number of questions and the number of findings are bounded', async (t) => {
  t.strictSame(refusals({ metadata: { x: 'x'.repeat(1_048_576) } }), ['body']);
  const many = Array.from({ length: 1_001 }, (_, i) => ({ id: `q${i}`, type: 'rating', headline: 'x' }));
  t.strictSame(refusals({ questions: many }), ['questions']);
  t.equal(refusals({ questions: many.slice(0, 500) }).length, 50);
});
