import t from 'tap';
import { surveysOfSegments } from '#api/resources/segments/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, clock } = api.context;
const path = '/api/v1/management/segments';
const now = (): string => new Date(clock()).toISOString();
const node = (root: unknown, operator: string, value: unknown) => ({
  id: 'n',
  connector: null,
  resource: { id: 'r', root, value, qualifier: { operator } },
});
const pros = [node({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', 'pro')];
const membersOf = (id: string) => [node({ type: 'segment', segmentId: id }, 'userIsIn', id)];
const send = (body: Record<string, unknown>) => api.manage('POST', path, { workspaceId, ...body });
const put = (id: string, body: unknown) => api.manage('PUT', `${path}/${id}`, body);
const add = async (title: string, filters: unknown = []) => (await send({ title, filters })).json.data;

t.test('POST 200: several surveys can use it, and it decides by its filters', async (t) => {
  const { id, filters } = await add('Pros', pros);
  t.strictSame(filters, pros);
  const survey = await addSurvey(api, { type: 'app', segmentId: id });
  t.strictSame((await api.manage('GET', `${path}/${id}`)).json.data.surveys, [survey.id]);
  const user = await api.client('POST', `/api/v1/client/${workspaceId}/user`, {
    userId: 'u',
    attributes: { plan: 'pro' },
  });
  t.strictSame(user.json.data.state.data.segments, [id]);
});

t.test('PUT 200: changes the private segment of a survey, and SDKs see it at once', async (t) => {
  const survey = await addSurvey(api, { type: 'app' });
  const hasFilters = async (): Promise<boolean> => {
    const { data } = (await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).json.data;
    return data.surveys.find(({ id }: { id: string }) => id === survey.id).segment.hasFilters;
  };
  t.equal(await hasFilters(), false);
  api.advance(5);
  const reply = await put(survey.segment.id, { filters: pros });
  t.match(reply.json.data, {
    title: survey.id,
    isPrivate: true,
    filters: pros,
    surveys: [survey.id],
    updatedAt: now(),
  });
  t.equal(await hasFilters(), true);
  t.strictSame(
    (await api.manage('GET', `/api/v1/management/surveys/${survey.id}`)).json.data.segment.filters,
    pros,
  );
  t.match((await put(survey.segment.id, { description: 'x' })).json.data, {
    filters: pros,
    description: 'x',
  });
  const renamed = await put(survey.segment.id, { title: 'Mine' });
  t.equal(renamed.status, 400);
  t.match(renamed.json.message, /leave the title out/);
  t.equal((await api.manage('DELETE', `${path}/${survey.segment.id}`)).status, 400);
});

t.test('POST and PUT 400: bad filters, by path; references to nothing or in a cycle', async (t) => {
  const wrong = await send({ title: 'x', filters: [node({ type: 'device' }, 'equals', 'watch')] });
  t.match(wrong.json, {
    message: 'Fields are missing or incorrectly formatted',
    details: { 'filters.0.resource.value': 'must be one of phone, desktop' },
  });
  t.match((await send({})).json.details, { title: 'Required' });
  t.match((await send({ title: 'x', filters: membersOf('cnothing') })).json.details, {
    filters: /does not exist/,
  });
  const first = await add('First');
  const second = await add('Second', membersOf(first.id));
  for (const filters of [membersOf(second.id), membersOf(first.id)]) {
    t.match((await put(first.id, { filters })).json.details, { filters: /refers back/ });
  }
  t.equal((await put(second.id, { filters: membersOf(first.id) })).status, 200);
});

t.test('POST and PUT 409: a taken title', async (t) => {
  await add('Taken');
  const other = await add('Other');
  for (const reply of [await send({ title: 'Taken' }), await put(other.id, { title: 'Taken' })]) {
    t.equal(reply.status, 409);
    t.equal(reply.json.message, 'Segment with title Taken already exists');
  }
});

t.test('DELETE 200 unless something uses it', async (t) => {
  const used = await add('Used');
  const survey = await addSurvey(api, { type: 'app', segmentId: used.id });
  t.match((await api.manage('DELETE', `${path}/${used.id}`)).json, {
    code: 'conflict',
    message: /used by a survey/,
  });
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  const referring = await add('Referring', membersOf(used.id));
  t.match((await api.manage('DELETE', `${path}/${used.id}`)).json, {
    code: 'conflict',
    details: { segmentId: referring.id },
  });
  t.equal((await api.manage('DELETE', `${path}/${referring.id}`)).status, 200);
  t.strictSame((await api.manage('DELETE', `${path}/${used.id}`)).json, { data: used });
  t.equal((await api.manage('GET', `${path}/${used.id}`)).status, 404);
});

t.test('the private segment of a survey outlives it while another survey uses it', async (t) => {
  const owner = await addSurvey(api, { type: 'app' });
  const borrower = await addSurvey(api, { type: 'app', segmentId: owner.segment.id });
  const bystander = await addSurvey(api, { type: 'app' });
  const surveys = '/api/v1/management/surveys';
  await api.manage('DELETE', `${surveys}/${owner.id}`);
  t.equal((await api.manage('GET', `${surveys}/${borrower.id}`)).json.data.segment.id, owner.segment.id);
  await api.manage('DELETE', `${surveys}/${borrower.id}`);
  t.equal(
    (await api.manage('GET', `${path}/${owner.segment.id}`)).status,
    404,
    'deleted with its last survey',
  );
  t.equal((await api.manage('GET', `${path}/${bystander.segment.id}`)).status, 200);
});

t.test('reads the surveys of segments by an index', async (t) => {
  const [surveys] = await queriesOf(db, (on) => surveysOfSegments(on, ['a', 'b'], 5));
  if (surveys === undefined) return t.fail('the request ran no query');
  t.match((await planOf(db, surveys))[0], /^SEARCH surveys USING INDEX surveys_segmentId/);
});

t.test('400: more than 64 KiB of filters, or 1 MiB in a workspace', async (t) => {
  const fresh = await startApi(t);
  const filtersOf = (length: number) => [
    node({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', 'x'.repeat(length)),
  ];
  const send = (title: string, length: number) =>
    fresh.manage('POST', path, { workspaceId, title, filters: filtersOf(length) });
  const tooLarge = await send('too large', 65_536);
  t.equal(tooLarge.status, 400);
  t.match(tooLarge.json.details, { filters: /64 KiB/ });

  const made: string[] = [];
  for (let i = 0; i < 16; i += 1) {
    const reply = await send(`s${i}`, 65_000);
    t.equal(reply.status, 200);
    made.push(reply.json.data.id);
  }
  const full = await send('one more', 65_000);
  t.equal(full.status, 400);
  t.match(full.json.details, { filters: /all segments of a workspace .* 1 MiB/ });
  t.equal((await send('small', 1_000)).status, 200, 'a small segment still fits');

  const survey = await addSurvey(fresh, { type: 'app' });
  const change = (id: string, length: number) =>
    fresh.manage('PUT', `${path}/${id}`, { filters: filtersOf(length) });
  t.equal((await change(survey.segment.id, 60_000)).status, 400, 'private segments count too');
  const [first = '', second = ''] = made;
  await fresh.context.db
    .updateTable('segments')
    .set({ filters: JSON.stringify(filtersOf(500_000)) })
    .where('id', '=', second)
    .execute();
  t.equal((await change(first, 64_000)).status, 200, 'a workspace over the limit may shrink a segment');
  t.equal((await change(first, 64_500)).status, 400, 'it may not grow one');
});
