/** The shape of a response is checked. Its answers are stored as sent, and not compared with their questions. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const v1 = `/api/v1/client/${workspaceId}/responses`;
const v2 = `/api/v2/client/${workspaceId}/responses`;
const management = '/api/v1/management/responses';

t.test('200: answers of every shape are stored as sent', async (t) => {
  const rules = [{ id: 'a', type: 'minLength', params: { min: 99 } }, { type: 'unknown to us' }];
  const survey = await addSurvey(api, {
    questions: [
      { id: 'q1', type: 'openText', headline: 'Why?', required: true, validation: { logic: 'and', rules } },
      { id: 'q2', type: 'nps', headline: 'Score', required: true },
    ],
    hiddenFields: { enabled: true, fieldIds: ['campaign'] },
  });
  t.strictSame(survey.questions[0].validation, { logic: 'and', rules }, 'so are the rules of the author');
  const data = { q1: 'x', q2: { row: 'column' }, campaign: 'spring', extra: ['a', 'b'], number: 7.5 };
  const body = { surveyId: survey.id, finished: true, data };
  for (const [path, send] of [
    [v1, api.client],
    [v2, api.client],
    [management, api.manage],
  ] as const) {
    const { json, status } = await send('POST', path, body);
    t.equal(status, 200, path);
    t.strictSame((await api.manage('GET', `${management}/${json.data.id}`)).json.data.data, data);
  }
});

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
