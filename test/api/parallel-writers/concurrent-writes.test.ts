/** Concurrent writes lose no change. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';

const api = await startApi(t);
const management = '/api/v1/management';

const made = async (path: string, body: object) =>
  (await api.manage('POST', `${management}/${path}`, { workspaceId, ...body })).json.data;

const filters = [
  {
    id: 'f',
    connector: null,
    resource: {
      id: 'f',
      root: { type: 'attribute', contactAttributeKey: 'email' },
      value: 'x',
      qualifier: { operator: 'equals' },
    },
  },
];
const resources: readonly (readonly [path: string, body: object, one: object, other: object])[] = [
  ['segments', { title: 'Both' }, { title: 'Changed' }, { description: 'changed' }],
  ['segments', { title: 'Before' }, { filters }, { title: 'After' }],
  [
    'contact-attribute-keys',
    { key: 'both', type: 'custom' },
    { name: 'Changed' },
    { description: 'changed' },
  ],
];
for (const [path, body, one, other] of resources) {
  t.test(`${path}: two concurrent updates keep each other’s changes`, async (t) => {
    const { id } = await made(path, body);
    const url = `${management}/${path}/${id}`;
    const replies = await Promise.all([api.manage('PUT', url, one), api.manage('PUT', url, other)]);
    t.strictSame(column(replies, 'status'), [200, 200]);
    t.match((await api.manage('GET', url)).json.data, { ...one, ...other });
  });
}

t.test('a taken value is reported by the index that found it', async (t) => {
  const survey = await addSurvey(api, { type: 'link' });
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id });
  const body = { surveyId: survey.id, finished: false, data: {}, displayId: display.json.data.id };
  const replies = await Promise.all(
    ['one', 'two'].map((singleUseId) =>
      api.client('POST', `/api/v1/client/${workspaceId}/responses`, { ...body, singleUseId }),
    ),
  );
  const refused = replies.find(({ status }) => status !== 200);
  t.equal(refused?.json.message, 'Display is already linked to a response');
});
