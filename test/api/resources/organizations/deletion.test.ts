/** A deleted organization takes its workspaces and their rows with it. */
import { pino } from 'pino';
import t from 'tap';
import { SLICE_ROWS } from '#api/db/slices.ts';
import { startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { deleteMarked } from '#api/resources/organizations/deletion.ts';
import { sweepFiles } from '#api/storage/files.ts';
import { startEventApi, startTestWorker } from '#test/api/events/support.ts';
import { addSurvey, countingRandom, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { countTables, fileKeys, fillWorkspace, tablesOfWorkspaces } from '#test/support/full-workspace.ts';
import { addOrganization, deleteFirstOrganization } from '#test/support/people.ts';
import { startMailServer } from '#test/support/smtp.ts';
import { until } from '#test/support/until.ts';

/** More than a slice has. */
const MANY = SLICE_ROWS + 50;
const log = pino({ level: 'silent' });
const isThere = async ({ context }: TestApi, key: string): Promise<boolean> =>
  (await context.storage.find(key)) !== null;

t.test('the job deletes every row and file of it in slices, and nothing else', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const others = await addOrganization(api, 'second');
  const survey = { ...(await addSurvey(api, { name: 'to be deleted' })) };
  t.ok(survey.id);
  const before = await countTables(db);
  await fillWorkspace(api, MANY);
  const filled = await countTables(db);
  for (const table of await tablesOfWorkspaces())
    t.ok((filled[table] ?? 0) > 0, `fillWorkspace has rows of ${table}`);

  await deleteFirstOrganization(api);
  const sum = async () => Object.values(await countTables(db)).reduce((all, count) => all + count, 0);
  const isLeft = async () =>
    (await db.selectFrom('workspaces').select('id').where('id', '=', workspaceId).executeTakeFirst()) !==
    undefined;
  let steps = 0;
  // Each run ends like that of a process that stops, as soon as it has deleted something.
  for (let [counted, patience] = [await sum(), 1]; await isLeft(); ) {
    let asked = 0;
    await deleteMarked(api.context, () => asked++ >= patience, log);
    const deleted = counted - (await sum());
    // A delivery has an attempt.
    t.ok(deleted <= 2 * SLICE_ROWS, `${deleted} rows in one slice`);
    counted -= deleted;
    patience = deleted > 0 ? 1 : patience + 1;
    if (deleted > 0) steps += 1;
  }
  t.ok(steps > 15, `${steps} slices`);
  api.advance(3_600_001);
  await sweepFiles(api.context);
  const after = await countTables(db);
  for (const table of await tablesOfWorkspaces()) {
    const ofOthers = table === 'workspaces' || table === 'apiKeyPermissions' ? 1 : 0;
    t.equal(after[table], ofOthers, table);
  }
  t.match(after, { organizations: 1, users: before.users, memberships: 0 });
  for (const key of fileKeys) t.equal(await isThere(api, key), false, key);
  t.equal((await api.client('GET', '/api/v1/management/me', undefined, { 'x-api-key': others })).status, 200);
});

t.test('another process, which has the survey in its cache, takes no response any more', async (t) => {
  const env = { DATABASE_URL: await sharedDatabase(t) };
  const one = await startApi(t, { env });
  const two = await startApi(t, { env, random: countingRandom('two') });
  const { id: surveyId } = await addSurvey(one);
  for (const version of ['v1', 'v2']) {
    const respond = () =>
      two.client('POST', `/api/${version}/client/${workspaceId}/responses`, {
        ...{ surveyId, finished: true, data: { q1: 'x' } },
      });
    if (version === 'v1') {
      t.equal((await respond()).status, 200);
      await deleteFirstOrganization(one);
    }
    t.equal((await respond()).status, 404, version);
  }
});

t.test('two processes at once, of which one goes on alone', async (t) => {
  const env = { DATABASE_URL: await sharedDatabase(t) };
  const one = await startApi(t, { env });
  const two = await startApi(t, { env });
  await fillWorkspace(one, MANY);
  await deleteFirstOrganization(one);
  const run = (api: TestApi) => deleteMarked(api.context, () => false, log);
  await Promise.all([run(one), run(two)]);
  one.advance(3_600_001);
  await sweepFiles(one.context);
  const left = await countTables(one.context.db);
  for (const table of ['workspaces', 'responses', 'contacts', 'deliveries', 'files'])
    t.equal(left[table], 0, table);
});

t.test('the scheduled job does it', async (t) => {
  const api = await startApi(t);
  await fillWorkspace(api, 1);
  await deleteFirstOrganization(api);
  const jobs = startScheduledJobs(api.context, log as never);
  t.teardown(() => jobs.stop());
  await until(async () => (await countTables(api.context.db)).workspaces === 0);
});

t.test('an upload with an earlier grant is refused', async (t) => {
  const api = await startApi(t);
  const port = await api.listen();
  const body = { workspaceId, fileName: 'logo.png', fileType: 'image/png' };
  const { data } = (await api.manage('POST', '/api/v1/management/storage', body)).json;
  await deleteFirstOrganization(api);
  const form = new FormData();
  for (const [name, value] of Object.entries(data.presignedFields)) form.append(name, String(value));
  form.append('file', new Blob(['x'], { type: 'image/png' }), 'logo.png');
  const url = `http://127.0.0.1:${port}${new URL(data.signedUrl).pathname}`;
  t.equal((await fetch(url, { method: 'POST', body: form })).status, 403);
  t.equal(await isThere(api, data.presignedFields.key), false);
});

t.test('what waits to be sent for it is never sent: webhooks, follow-ups, mails', async (t) => {
  const smtp = await startMailServer(t);
  const api = await startEventApi(t, { env: { SMTP_URL: smtp.url, MAIL_FROM: 'a@example.com' } });
  const { db, clock, mailer } = api.context;
  await addOrganization(api, 'second');
  await api.worker.stop();
  const hook = await api.addHook();
  const followUp = {
    ...{ id: 'f1', name: 'Thanks', trigger: { type: 'response', properties: null } },
    action: {
      type: 'send-email',
      properties: {
        ...{ to: 'team@example.com', from: 'a@example.com', replyTo: [], subject: 'Thanks' },
        ...{ body: 'Thank you', attachResponseData: false },
      },
    },
  };
  const survey = await addSurvey(api, { followUps: [followUp] });
  await api.respond({ surveyId: survey.id, finished: true });
  await api.addWebhook({ url: hook.url, workspaceId: 'second' });
  const mail = { kind: 'surveyLink', subject: 's', body: 'b' };
  await mailer.accept(db, { ...mail, to: 'gone@example.com', workspaceId });
  await mailer.accept(db, { ...mail, to: 'kept@example.com', workspaceId: 'second' });
  const now = new Date(clock()).toISOString();
  await db
    .insertInto('events')
    .values({
      ...{ id: 'waiting', createdAt: now, workspaceId, surveyId: survey.id, responseId: 'r' },
      ...{ type: 'responseCreated', payload: '{}', mailsDueAt: null },
    })
    .execute();
  await db
    .insertInto('deliveries')
    .values({
      ...{ id: 'due', createdAt: now, updatedAt: now, eventId: 'waiting', webhookId: hook.id },
      ...{ status: 'pending', attemptCount: 0, failureCount: 0, dueAt: now, lease: null },
    })
    .execute();

  await deleteFirstOrganization(api);
  const worker = startTestWorker(api);
  t.teardown(() => worker.stop());
  await worker.idle();
  await mailer.idle();
  t.strictSame(hook.received, [], 'no webhook');
  t.strictSame(
    smtp.mails.flatMap(({ to }) => to),
    ['kept@example.com'],
    'only the mail of the other workspace',
  );
});
