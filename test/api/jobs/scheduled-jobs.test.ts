/** Jobs open and close surveys by their dates, and delete old rows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import t from 'tap';
import { forgetSurplusDeliveries, oldEvents, RETENTION } from '#api/events/retention.ts';
import { forgetEvents, moveSurveys, startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { dueToClose, dueToPublish } from '#api/resources/surveys/schedule.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { startEventApi } from '#test/api/events/support.ts';
import { addSurvey, startApi } from '#test/support/api-app.ts';
import { planOf } from '#test/support/query-plan.ts';

const HOUR = 3_600_000;

t.test('surveys end and start at their dates', async (t) => {
  const api = await startApi(t);
  const { context } = api;
  const at = (ms: number): string => toTimestamp(context.clock() + ms);
  const past = at(-HOUR);
  const soon = at(HOUR);
  const cases: readonly (readonly [string, Record<string, unknown>, string, string])[] = [
    ['no date', { status: 'inProgress' }, 'inProgress', 'inProgress'],
    ['to be closed', { status: 'inProgress', closeOn: soon }, 'inProgress', 'completed'],
    ['closed in the past', { status: 'inProgress', closeOn: past }, 'completed', 'completed'],
    ['paused', { status: 'paused', closeOn: soon }, 'paused', 'completed'],
    ['a draft is not closed', { status: 'draft', closeOn: past }, 'draft', 'draft'],
    ['to be published', { status: 'draft', publishOn: soon }, 'draft', 'inProgress'],
    ['scheduled', { status: 'scheduled', publishOn: soon }, 'scheduled', 'inProgress'],
    ['scheduled for the past', { status: 'scheduled', publishOn: past }, 'inProgress', 'inProgress'],
    ['a draft of something past', { status: 'draft', publishOn: past }, 'draft', 'draft'],
    ['paused by hand', { status: 'paused', publishOn: soon }, 'paused', 'paused'],
    ['both', { status: 'scheduled', publishOn: soon, closeOn: soon }, 'scheduled', 'completed'],
  ];
  const surveys = [];
  for (const [name, fields, first, second] of cases) {
    surveys.push({ ...(await addSurvey(api, { name, ...fields })), first, second });
  }
  const statusOf = async (id: string) =>
    (await api.manage('GET', `/api/v1/management/surveys/${id}`)).json.data.status;
  await moveSurveys(context);
  for (const { id, name, first } of surveys) t.equal(await statusOf(id), first, name);
  api.advance(HOUR);
  await moveSurveys(context);
  for (const { id, name, second } of surveys) t.equal(await statusOf(id), second, `${name}, an hour later`);
});

t.test('SDKs see the changed surveys', async (t) => {
  const api = await startApi(t);
  await api.addWorkspace('ws9', 'env9');
  const key = await api.addKey({ ws9: 'manage' });
  const survey = {
    workspaceId: 'ws9',
    name: 'Website',
    type: 'website',
    status: 'inProgress',
    closeOn: toTimestamp(api.context.clock() + 1_000),
    questions: [{ id: 'q1', type: 'openText', headline: 'What?' }],
  };
  await api.client('POST', '/api/v1/management/surveys', survey, { 'x-api-key': key });
  const seen = async (scope: string): Promise<number> =>
    (await api.client('GET', `/api/v1/client/${scope}/environment`)).json.data.surveys.length;
  t.same([await seen('ws9'), await seen('env9')], [1, 1]);
  api.advance(1_000);
  t.same([await seen('ws9'), await seen('env9')], [1, 1], 'the state is cached');
  await moveSurveys(api.context);
  t.same([await seen('ws9'), await seen('env9')], [0, 0], 'the cache is purged under both ids');
});

t.test('finds the dates by indexes', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const now = '2026-01-01T00:00:00.000Z';
  t.match(await planOf(db, dueToClose(db, now)), [/SEARCH surveys USING INDEX surveys_closeOn/]);
  t.match(await planOf(db, dueToPublish(db, now)), [/SEARCH surveys USING INDEX surveys_publishOn/]);
});

t.test('deletes deliveries after a week, and all but the newest thousand', async (t) => {
  const api = await startEventApi(t);
  const { db } = api.context;
  const { id: webhookId } = await api.addHook();
  const count = async () => ({
    events: (await db.selectFrom('events').select('id').execute()).length,
    deliveries: (await db.selectFrom('deliveries').select('id').execute()).length,
    attempts: (await db.selectFrom('deliveryAttempts').select('number').execute()).length,
  });
  for (let i = 0; i < 5; i += 1) {
    await api.respond();
    await api.worker.idle();
    api.advance(1_000);
  }
  t.same(await count(), { events: 5, deliveries: 5, attempts: 5 });

  const ids = async (): Promise<readonly string[]> =>
    (await db.selectFrom('deliveries').select('id').orderBy('createdAt', 'desc').execute()).map(
      ({ id }) => id,
    );
  const newest = (await ids()).slice(0, 3);
  t.match(await forgetSurplusDeliveries(db, webhookId, 3), { events: 2, delivered: 2, isPartial: false });
  t.same(await count(), { events: 3, deliveries: 3, attempts: 3 }, 'deleted with their last delivery');
  t.same(await ids(), newest, 'the newest deliveries are kept');

  await db
    .updateTable('deliveries')
    .set({ status: 'pending', dueAt: toTimestamp(api.context.clock() + HOUR) })
    .execute();
  await forgetSurplusDeliveries(db, webhookId, 0);
  t.equal((await count()).deliveries, 3, 'pending deliveries do not count');

  const lines: object[] = [];
  const log = { info: (fields: object) => void lines.push(fields), warn: () => undefined };
  const forget = () => forgetEvents(api.context, () => false, log);
  await api.worker.stop();
  api.advance(RETENTION * 2);
  await forget();
  t.same(await count(), { events: 3, deliveries: 3, attempts: 3 }, 'pending deliveries are kept for longer');
  t.same(lines, []);

  const now = () => toTimestamp(api.context.clock());
  const settle = (status: 'delivered' | 'parked', id: string) =>
    db
      .updateTable('deliveries')
      .set({ status, dueAt: null, updatedAt: now() })
      .where('id', '=', id)
      .execute();
  const [first = '', second = ''] = newest;
  await settle('delivered', first);
  await settle('parked', second);
  api.advance(RETENTION);
  await forget();
  t.equal((await count()).events, 3, 'settled exactly a week ago');
  api.advance(1);
  await forgetEvents(api.context, () => true, log);
  t.equal((await count()).events, 3, 'a stopped job deletes nothing');
  await forget();
  t.same(await count(), { events: 1, deliveries: 1, attempts: 1 }, 'a pending delivery is kept');
  t.same(lines, [{ job: 'forgetEvents', events: 2, delivered: 1, parked: 1 }]);
  const plan = await planOf(db, oldEvents(db, now(), 500));
  t.match(plan.join('\n'), /SEARCH events USING INDEX events_age/);
});

t.test('keeps an event whose mails are not made yet', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  await db
    .insertInto('events')
    .values({
      ...{
        id: 'e1',
        createdAt: '2020-01-01T00:00:00.000Z',
        workspaceId: 'ws1',
        surveyId: 's',
        responseId: 'r',
      },
      ...{ type: 'responseCreated', payload: '{}', mailsDueAt: '2020-01-01T00:00:00.000Z' },
    })
    .execute();
  await forgetEvents(api.context, () => false, {
    info: () => t.fail('nothing is deleted'),
    warn: () => undefined,
  });
  t.equal((await db.selectFrom('events').select('id').execute()).length, 1);
});

t.test('scheduled jobs begin at once, go on after errors, and stop', async (t) => {
  const api = await startApi(t);
  const { context } = api;
  const survey = await addSurvey(api, { closeOn: '2020-01-01T00:00:00Z' });
  const jobs = startScheduledJobs(context, pino({ level: 'silent' }));
  const status = async () =>
    (await context.db.selectFrom('surveys').select('status').where('id', '=', survey.id).executeTakeFirst())
      ?.status;
  while ((await status()) !== 'completed') await sleep(1);
  await jobs.stop();

  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const failing = startScheduledJobs({ ...context, clock: () => Number.NaN }, log);
  await failing.stop();
  t.match(lines.join(), /a scheduled job failed; it is tried again/);
});
