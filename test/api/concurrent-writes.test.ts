/** Concurrent writes lose no change, and counts are exact. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const management = '/api/v1/management';

const made = async (path: string, body: object) =>
  (await api.manage('POST', `${management}/${path}`, { workspaceId, ...body })).json.data;

const resources: readonly (readonly [path: string, body: object, one: object, other: object])[] = [
  ['segments', { title: 'Both' }, { title: 'Changed' }, { description: 'changed' }],
  [
    'contact-attribute-keys',
    { key: 'both', type: 'custom' },
    { name: 'Changed' },
    { description: 'changed' },
  ],
  ['attribute-classes', { name: 'bothOfThem', type: 'code' }, { archived: true }, { description: 'changed' }],
];
for (const [path, body, one, other] of resources) {
  t.test(`${path}: two concurrent updates keep each other’s changes`, async (t) => {
    const { id } = await made(path, body);
    const url = `${management}/${path}/${id}`;
    const replies = await Promise.all([api.manage('PUT', url, one), api.manage('PUT', url, other)]);
    t.strictSame(
      replies.map(({ status }) => status),
      [200, 200],
    );
    t.match((await api.manage('GET', url)).json.data, { ...one, ...other });
  });
}

t.test('changing the filters of a segment keeps a title that was set meanwhile', async (t) => {
  const { id } = await made('segments', { title: 'Before' });
  const url = `${management}/segments/${id}`;
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
  await Promise.all([api.manage('PUT', url, { filters }), api.manage('PUT', url, { title: 'After' })]);
  t.match((await api.manage('GET', url)).json.data, { title: 'After', filters });
});

t.test('autoComplete: concurrent responses finish exactly as many as allowed', async (t) => {
  const survey = await addSurvey(api, { autoComplete: 3 });
  const replies = await Promise.all(
    Array.from({ length: 10 }, () =>
      api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
        surveyId: survey.id,
        finished: true,
        data: { q1: 'x' },
      }),
    ),
  );
  t.equal(replies.filter(({ status }) => status === 200).length, 3);
  for (const reply of replies.filter(({ status }) => status !== 200)) {
    t.equal(reply.status, 403);
    t.equal(reply.json.message, 'Survey is not accepting submissions');
  }
});

t.test('autoComplete also counts responses that an update finishes', async (t) => {
  const survey = await addSurvey(api, { autoComplete: 2 });
  const url = `/api/v1/client/${workspaceId}/responses`;
  const ids = [];
  for (let i = 0; i < 5; i += 1) {
    const reply = await api.client('POST', url, { surveyId: survey.id, finished: false, data: {} });
    ids.push(reply.json.data.id);
  }
  const replies = await Promise.all(
    ids.map((id) => api.client('PUT', `${url}/${id}`, { finished: true, data: { q1: 'x' } })),
  );
  t.equal(replies.filter(({ status }) => status === 200).length, 2);
});

t.test('404 if the survey is deleted meanwhile', async (t) => {
  const survey = await addSurvey(api);
  const [deleted, response, display] = await Promise.all([
    api.manage('DELETE', `${management}/surveys/${survey.id}`),
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      surveyId: survey.id,
      finished: true,
      data: { q1: 'x' },
    }),
    api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: survey.id }),
  ]);
  t.equal(deleted.status, 200);
  for (const reply of [response, display]) t.ok([200, 403, 404].includes(reply.status), reply.text);
});

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
