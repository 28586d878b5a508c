/** The length of what callers write is limited, and checking it takes linear time. */
import t from 'tap';
import { normalizeEmail } from '#api/auth/password.ts';
import { CHOICES_MAX, RESPONSE_BYTES_MAX } from '#api/values/content-limits.ts';
import { addSurvey, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const survey = await addSurvey(api);
const responses = `/api/v1/client/${workspaceId}/responses`;
const create = (data: object, fields: object = {}) =>
  api.client('POST', responses, { surveyId: survey.id, finished: false, data, ...fields });
const write = (fields: Record<string, unknown>) =>
  api.manage('POST', '/api/v1/management/surveys', surveyBody(fields));

const tooLarge: readonly (readonly [name: string, data: object, path: RegExp, fields?: object])[] = [
  ['one text', { q1: 'x'.repeat(RESPONSE_BYTES_MAX) }, /^data$/],
  [
    'all together',
    Object.fromEntries(
      Array.from({ length: Math.ceil(RESPONSE_BYTES_MAX / 60_000) }, (_, i) => [`q${i}`, 'x'.repeat(60_000)]),
    ),
    /^data$/,
  ],
  ['an id', {}, /^singleUseId$/, { singleUseId: 'x'.repeat(2_000) }],
];
for (const [name, data, path, fields] of tooLarge) {
  t.test(`400: a response with too much of ${name}`, async (t) => {
    const reply = await create(data, fields);
    t.equal(reply.status, 400);
    t.ok(
      Object.keys(reply.json.details).some((key) => path.test(key)),
      reply.text.slice(0, 300),
    );
    const managed = await api.manage('POST', '/api/v1/management/responses', {
      surveyId: survey.id,
      finished: false,
      data,
      ...fields,
    });
    t.equal(managed.status, 400);
  });
}

t.test('400: updates cannot make a response larger than allowed', async (t) => {
  const { id } = (await create({ q1: 'x' })).json.data;
  const statuses: number[] = [];
  for (let i = 0; i < 12; i += 1) {
    const reply = await api.client('PUT', `${responses}/${id}`, {
      finished: false,
      data: { [`q${i}`]: 'x'.repeat(60_000) },
    });
    statuses.push(reply.status);
  }
  t.strictSame([...new Set(statuses)], [200, 400]);
  const stored = await api.context.db
    .selectFrom('responses')
    .select('data')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  t.ok(stored.data.length <= RESPONSE_BYTES_MAX);
  const managed = await api.manage('PUT', `/api/v1/management/responses/${id}`, {
    data: { z: 'x'.repeat(60_000) },
  });
  t.equal(managed.status, 400, 'the management API has the same limits');
});

const question = (fields: object) => ({ id: 'q1', type: 'openText', headline: { default: 'x' }, ...fields });
const withQuestion = (fields: object) => ({ questions: [question(fields)] });
const many = <T>(length: number, make: (i: number) => T): T[] => Array.from({ length }, (_, i) => make(i));
const choices = many(CHOICES_MAX + 1, (i) => ({ id: `c${i}`, label: 'x' }));
const tooLargeSurveys: readonly (readonly [string, Record<string, unknown>])[] = [
  ['questions', { questions: many(1_001, (i) => question({ id: `q${i}` })) }],
  ['choices', withQuestion({ type: 'multipleChoiceSingle', choices })],
  ['bytes', { customHeadScripts: 'x'.repeat(1_100_000) }],
];
for (const [name, fields] of tooLargeSurveys) {
  t.test(`400: a survey with too much ${name}`, async (t) => {
    const reply = await write(fields);
    t.equal(reply.status, 400, reply.text.slice(0, 300));
    t.not(Object.keys(reply.json.details).length, 0);
    const { workspaceId: _, ...change } = surveyBody(fields);
    const put = await api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, change);
    t.equal(put.status, 400);
  });
}

/**
 * Each of these was quadratic or worse, and took the old code from ten seconds to hours. There is no time limit here,
 * because only linear code finishes within the time of the test.
 */
t.test('200: an answer of the maximum length that is full of file addresses', async (t) => {
  const text = '/storage/a/private/'.repeat(RESPONSE_BYTES_MAX / 20);
  const reply = await create({ q1: `${text} ` });
  t.equal(reply.status, 200);
});

t.test('bounds the length of headers and mail addresses', async (t) => {
  t.equal(normalizeEmail(`a@${'a.'.repeat(2 ** 20)}`), null);
  const body = { surveyId: survey.id, data: { q1: 'x' }, finished: true };
  const reply = await api.client('POST', responses, body, { 'user-agent': 'Android '.repeat(1_500) });
  t.equal(reply.status, 200);
});
