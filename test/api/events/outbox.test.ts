/** An event and its change are written together or not at all. */
import t from 'tap';
import { fanOut } from '#api/jobs/fan-out.ts';
import { createResponse } from '#api/resources/responses/write.ts';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';
import { given } from '../resources/responses/new-response.ts';

const log = { warn: () => {} };

const addWebhook = (api: TestApi, triggers: readonly string[]) =>
  api.manage('POST', '/api/v1/webhooks', { workspaceId, url: 'https://hooks.example.com/', triggers });
const respond = (api: TestApi, surveyId: string, fields: object = {}) =>
  api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    ...{ surveyId, finished: false, data: { q1: 'x' } },
    ...fields,
  });

t.test('a transaction that is rolled back leaves no event', async (t) => {
  const api = await startApi(t);
  await addWebhook(api, ['responseCreated']);
  const { id } = await addSurvey(api);
  const once = () => ({ ...given, singleUseId: 'once' });
  const eventCount = async () => (await api.context.db.selectFrom('events').select('id').execute()).length;
  await createResponse(api.context, id, once);
  t.equal(await eventCount(), 2);
  await t.rejects(createResponse(api.context, id, once), { code: 'conflict' });
  t.equal(await eventCount(), 2);

  // The outbox cannot be written, so the response is refused.
  await api.context.db.schema.alterTable('events').renameTo('elsewhere').execute();
  await t.rejects(createResponse(api.context, id, () => ({ ...given, singleUseId: 'twice' })));
  t.equal((await api.context.db.selectFrom('responses').select('id').execute()).length, 1);
});

t.test('writes no event that nobody would receive', async (t) => {
  const api = await startApi(t);
  const survey = await addSurvey(api);
  await respond(api, survey.id, { finished: true });
  t.same(await api.context.db.selectFrom('events').selectAll().execute(), []);
});

t.test('an event that no webhook wants leaves the outbox', async (t) => {
  const api = await startApi(t);
  const { context } = api;
  const survey = await addSurvey(api);
  await addWebhook(api, ['responseFinished']);
  await respond(api, survey.id, { finished: true });
  t.equal(await fanOut(context, log), 2);
  t.same(await context.db.selectFrom('events').select(['type', 'snapshot']).execute(), [
    { type: 'responseFinished', snapshot: null },
  ]);
  t.equal(await fanOut(context, log), 0);
  t.equal((await context.db.selectFrom('deliveries').select('id').execute()).length, 1);
});

t.test('two processes that read the same events deliver them once', async (t) => {
  const api = await startApi(t);
  const { context } = api;
  const survey = await addSurvey(api);
  await addWebhook(api, ['responseCreated']);
  for (let i = 0; i < 10; i += 1) await respond(api, survey.id);
  // Both read before either claims, because a transaction waits for the one connection, and a read does not.
  await Promise.all([fanOut(context, log), fanOut(context, log)]);
  t.equal((await context.db.selectFrom('deliveries').select('id').execute()).length, 10);
});

t.test('finds new events by an index, without reading those already fanned out', async (t) => {
  const api = await startApi(t);
  const queries = await queriesOf(api.context.db, (db) => fanOut({ ...api.context, db }, log));
  const [first] = queries;
  if (first === undefined) throw new Error('no query');
  t.same(await planOf(api.context.db, first), ['SCAN events USING INDEX events_outbox']);
});

t.test('a batch needs no more statements than one event', async (t) => {
  const api = await startApi(t);
  await addWebhook(api, ['responseCreated', 'responseFinished']);
  const { id: surveyId } = await addSurvey(api);
  const { context } = api;
  const statementsFor = async (responses: number): Promise<number> => {
    for (let i = 0; i < responses; i++) {
      const reply = await respond(api, surveyId, { finished: true, data: { q1: `answer ${i}` } });
      t.equal(reply.status, 200);
    }
    return (await queriesOf(context.db, (db) => fanOut({ ...context, db }, log))).length;
  };
  const ofOne = await statementsFor(1);
  t.equal(await statementsFor(20), ofOne);
  const events = await context.db.selectFrom('events').select(['type', 'payload', 'snapshot']).execute();
  t.equal(events.length, 42);
  t.ok(events.every(({ snapshot }) => snapshot === null));
  const answers = events.map(({ payload, type }) => {
    const { data, event } = JSON.parse(payload ?? 'null');
    t.equal(event, type, 'each event has its own payload');
    return data.data.q1;
  });
  t.equal(new Set(answers).size, 20);
});

t.test('writes large payloads in several parts', async (t) => {
  const api = await startApi(t);
  await addWebhook(api, ['responseCreated']);
  const { id: surveyId } = await addSurvey(api);
  const { context } = api;
  const q1 = 'x'.repeat(60_000);
  for (let i = 0; i < 25; i++) t.equal((await respond(api, surveyId, { data: { q1 } })).status, 200);
  const queries = await queriesOf(context.db, (db) => fanOut({ ...context, db }, log));
  const writes = queries.filter(({ sql }) => sql.includes('with "written"'));
  t.ok(writes.length > 1, `${writes.length} statements`);
  const events = await context.db.selectFrom('events').select('payload').execute();
  t.ok(events.length === 25 && events.every(({ payload }) => (payload?.length ?? 0) > 60_000));
});
