/** Jobs open and close surveys by their dates, and delete old rows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import t from 'tap';
import { forgetEvents, oldEvents, RETENTION } from '#api/events/retention.ts';
import { moveSurveys, startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
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
  const closing = await addSurvey(api, {
    name: 'Website',
    type: 'website',
    status: 'inProgress',
    closeOn: soon,
  });
  const isSeen = async (): Promise<boolean> =>
    (await api.client('GET', '/api/v1/client/ws1/environment')).text.includes(closing.id);
  t.ok(await isSeen());
  await moveSurveys(context);
  for (const { id, name, first } of surveys) t.equal(await statusOf(id), first, name);
  api.advance(HOUR);
  t.ok(await isSeen(), 'the state is cached');
  await moveSurveys(context);
  t.notOk(await isSeen(), 'the cache is purged');
  for (const { id, name, second } of surveys) t.equal(await statusOf(id), second, `${name}, an hour later`);
});

t.test('finds the dates by indexes', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const now = '2026-01-01T00:00:00.000Z';
  t.match(await planOf(db, dueToClose(db, now)), [/SEARCH surveys USING INDEX surveys_closeOn/]);
  t.match(await planOf(db, dueToPublish(db, now)), [/SEARCH surveys USING INDEX surveys_publishOn/]);
});

t.test('deletes events after a week', async (t) => {
  const api = await startEventApi(t);
  const { db, clock } = api.context;
  const { id: webhookId } = await api.addHook();
  const count = async () => ({
    events: (await db.selectFrom('events').select('id').execute()).length,
    deliveries: (await db.selectFrom('deliveries').select('id').execute()).length,
    attempts: (await db.selectFrom('deliveryAttempts').select('number').execute()).length,
  });
  const rest = (left: number) => ({ events: left, deliveries: left, attempts: left });
  const forget = () => forgetEvents(db, clock(), () => false);
  for (let i = 0; i < 3; i += 1) {
    await api.respond();
    await api.worker.idle();
    api.advance(1_000);
  }
  await api.worker.stop();
  const rows = await db.selectFrom('deliveries').select('id').orderBy('createdAt', 'desc').execute();
  const newest = rows.map(({ id }) => id);

  const set = (id: string, status: 'delivered' | 'parked' | 'pending', dueAt: string | null = null) =>
    db
      .updateTable('deliveries')
      .set({ status, dueAt, updatedAt: toTimestamp(clock()) })
      .where('id', '=', id)
      .execute();
  for (const id of newest) await set(id, 'pending', toTimestamp(clock() + HOUR));
  api.advance(RETENTION * 2);
  t.equal(await forget(), 0, 'and are kept for longer');

  const [first = '', second = ''] = newest;
  await set(first, 'delivered');
  await set(second, 'parked');
  api.advance(RETENTION);
  t.equal(await forget(), 0, 'settled exactly a week ago');
  api.advance(1);
  t.equal(await forget(), 2);
  t.same(await count(), rest(1), 'a pending delivery is kept');
  await db
    .updateTable('webhooks')
    .set({ pausedUntil: toTimestamp(clock()) })
    .where('id', '=', webhookId)
    .execute();
  t.equal(await forget(), 1, 'unless its receiver has hung for a week');
  const plan = await planOf(db, oldEvents(db, toTimestamp(clock()), 500));
  t.match(plan.join('\n'), /SEARCH events USING INDEX events_age/);

  const event = {
    workspaceId: 'ws1',
    surveyId: 's',
    responseId: 'r',
    type: 'responseCreated' as const,
    payload: '{}',
  };
  const createdAt = '2020-01-01T00:00:00.000Z';
  await db
    .insertInto('events')
    .values({ ...event, id: 'e1', createdAt, mailsDueAt: createdAt })
    .execute();
  t.equal(await forget(), 0, 'an event whose mails are not made yet is kept');
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
