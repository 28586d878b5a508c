import { pino } from 'pino';
import t from 'tap';
import { buildApp } from '#api/app.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db, random, clock } = api.context;
const paths = [`/api/v1/client/${workspaceId}/user`, `/api/v2/client/${workspaceId}/user`];
const [path = ''] = paths;
const client = `/api/v1/client/${workspaceId}`;
await api.addWorkspace('ws2');
const post = (body: unknown, headers?: Record<string, string>) => api.client('POST', path, body, headers);
const stateOf = async (body: unknown, headers?: Record<string, string>) =>
  (await post(body, headers)).json.data.state.data;
const only = (root: unknown, operator: string, value: unknown) => [
  { id: 'f', connector: null, resource: { id: 'r', root, value, qualifier: { operator } } },
];

t.test('200: displays and responses, newest first', async (t) => {
  const survey = await addSurvey(api);
  const other = await addSurvey(api);
  const show = async (surveyId: string) => {
    api.advance(1_000);
    return (await api.client('POST', `${client}/displays`, { surveyId, userId: 'viewer' })).json.data.id;
  };
  await show(survey.id);
  await show(survey.id);
  const firstAt = new Date(clock()).toISOString();
  await show(other.id);
  const lastAt = new Date(clock()).toISOString();
  for (const surveyId of [survey.id, survey.id, other.id]) {
    api.advance(1_000);
    await api.client('POST', `${client}/responses`, {
      surveyId,
      userId: 'viewer',
      finished: false,
      data: {},
    });
  }
  const state = await stateOf({ userId: 'viewer' });
  t.strictSame(state.displays.slice(0, 2), [
    { surveyId: other.id, createdAt: lastAt },
    { surveyId: survey.id, createdAt: firstAt },
  ]);
  t.equal(state.displays.length, 3);
  t.strictSame(state.responses, [other.id, survey.id, survey.id], 'one entry for each response');
  t.equal(state.lastDisplayAt, lastAt);
});

t.test('200: the segments that match, and those of surveys for everybody', async (t) => {
  const names = new Map<string, string>();
  const add = async (name: string, filters: readonly unknown[]) => {
    const { json } = await api.manage('POST', '/api/v1/management/segments', {
      workspaceId,
      title: name,
      filters,
    });
    names.set(json.data.id, name);
    return json.data.id;
  };
  const everybody = await addSurvey(api, { type: 'app' });
  names.set(everybody.segment.id, 'everybody');
  const seen = { surveyScope: 'specific', surveyIds: [everybody.id] };
  const pros = await add('pros', only({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', 'pro'));
  await add('phones', only({ type: 'device', deviceType: 'phone' }, 'equals', 'phone'));
  await add('newcomers', only({ type: 'surveyInteraction' }, 'haveNotSeen', seen));
  await add('nested', only({ type: 'segment', segmentId: pros }, 'userIsNotIn', pros));
  await add('broken', [{ what: 'ever' }]);
  const segmentsOf = async (body: unknown, userAgent?: string): Promise<string[]> => {
    const { segments } = await stateOf(body, userAgent === undefined ? {} : { 'user-agent': userAgent });
    return segments.map((id: string) => names.get(id)).sort();
  };
  t.strictSame(await segmentsOf({ userId: 's1' }), ['everybody', 'nested', 'newcomers']);
  t.strictSame(await segmentsOf({ userId: 's2', attributes: { plan: 'pro' } }), [
    'everybody',
    'newcomers',
    'pros',
  ]);
  t.strictSame(
    await segmentsOf(
      { userId: 's1' },
      'Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148',
    ),
    ['everybody', 'nested', 'newcomers', 'phones'],
  );
  await api.client('POST', `${client}/displays`, { surveyId: everybody.id, userId: 's1' });
  t.strictSame(await segmentsOf({ userId: 's1' }), ['everybody', 'nested']);
  const foreign = await api.client('POST', '/api/v1/client/ws2/user', { userId: 's1' });
  t.strictSame(foreign.json.data.state.data.segments, [], 'only segments of the workspace');
});

t.test('the number of queries does not depend on the number of rows', async (t) => {
  const survey = await addSurvey(api, { type: 'app' });
  const count = async (body: unknown): Promise<number> => {
    const queries = await queriesOf(db, async (on) => {
      const app = await buildApp({ ...api.context, db: on }, pino({ level: 'silent' }));
      const reply = await app.inject({ method: 'POST', url: path, payload: JSON.stringify(body) });
      t.equal(reply.statusCode, 200, reply.body);
      await app.close();
    });
    return queries.length;
  };
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`many_${i}`, 'x']));
  const fresh = await count({ userId: 'q1', attributes: { one: '1' } });
  t.equal(await count({ userId: 'q2', attributes: many }), fresh, 'as many queries for sixty as for one');
  // Two of them are locks, which SQLite does not need.
  t.ok(fresh <= 18, `${fresh} queries`);
  const known = await count({ userId: 'q2' });
  t.equal(await count({ userId: 'q2', attributes: many }), known, 'unchanged attributes need no query');
  t.ok(known <= 7, `${known} queries for a known user`);
  const { contactId } = await stateOf({ userId: 'q2' });
  const at = new Date(clock()).toISOString();
  for (let i = 0; i < 40; i += 1) {
    const row = { id: newId(random), surveyId: survey.id, contactId, createdAt: at, updatedAt: at };
    await db.insertInto('displays').values(row).execute();
    await addSurvey(api, { type: 'app' });
  }
  t.equal(await count({ userId: 'q2' }), known, 'displays and segments need no query');
});

t.test('200: creates no keys beyond 150, and reports it', async (t) => {
  const fresh = await startApi(t);
  const attributes = Object.fromEntries(Array.from({ length: 210 }, (_, i) => [`key_${i}`, i]));
  const reply = await fresh.client('POST', path, {
    userId: 'greedy',
    attributes: { ...attributes, firstName: 'G' },
  });
  t.equal(reply.status, 200);
  const { errors } = reply.json.data;
  t.equal(
    errors[0],
    'The attribute "key_145" was not stored: the workspace has 150 attribute keys, which is the maximum',
  );
  t.equal(errors.length, 50);
  const keys = (await fresh.manage('GET', '/api/v1/management/contact-attribute-keys')).json.data;
  t.equal(keys.length, 150);
  const [person] = (await fresh.manage('GET', '/api/v1/management/people')).json.data;
  t.match(person.attributes, { firstName: 'G', key_144: '144' }, 'known keys still accept values');
});
