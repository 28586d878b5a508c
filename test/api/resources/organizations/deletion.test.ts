/** A workspace that its owner deletes is gone at once, and what was in it soon after. */
import { pino } from 'pino';
import t from 'tap';
import { SLICE_ROWS } from '#api/db/slices.ts';
import { startScheduledJobs } from '#api/jobs/scheduled-jobs.ts';
import { deleteMarked } from '#api/resources/organizations/deletion.ts';
import { StorageUnavailable } from '#api/storage/storage.ts';
import { startEventApi, startTestWorker } from '#test/api/events/support.ts';
import {
  addSurvey,
  apiKey,
  countingRandom,
  startApi,
  type TestApi,
  workspaceId,
} from '#test/support/api-app.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { countTables, fileKeys, fillWorkspace, tablesOfWorkspaces } from '#test/support/full-workspace.ts';
import { type Browser, logInOwner } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';
import { startS3 } from '#test/support/s3.ts';
import { startMailServer } from '#test/support/smtp.ts';
import { until } from '#test/support/until.ts';

/** More than a slice has. */
const MANY = SLICE_ROWS + 50;
const log = pino({ level: 'silent' });
const html = { accept: 'text/html', 'sec-fetch-site': 'same-origin' };
const pathOf = (id: string): string => `/account/workspaces/${id}/delete`;
const path = pathOf(workspaceId);

async function send(browser: Browser, url: string, fields: Record<string, string>) {
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  return browser.call('POST', url, new URLSearchParams({ csrfToken, ...fields }).toString(), html);
}

const removeFirst = async (api: TestApi) => {
  const reply = await send(await logInOwner(api), path, { name: 'My workspace' });
  if (reply.status !== 303) throw new Error(`${reply.status} ${reply.text}`);
};

const isThere = async ({ context }: TestApi, key: string): Promise<boolean> =>
  (await context.storage.find(key)) !== null;

const statusOf = async (api: TestApi): Promise<number> =>
  (await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).status;

t.test('303: the owner, who types the name on a page of its own', async (t) => {
  const api = await startApi(t);
  await api.addWorkspace('second');
  const both = await api.addKey({ [workspaceId]: 'manage', second: 'read' });
  const owner = await logInOwner(api);
  const account = await owner.call('GET', '/account', undefined, html);
  t.match(account.text, `href="${path}"`);
  const page = await owner.call('GET', path, undefined, html);
  t.equal(page.status, 200);
  for (const text of ['My workspace', `action="${path}"`, 'name="csrfToken"', 'class="danger"'])
    t.match(page.text, text);

  const wrong = await send(owner, path, { name: 'Workspace second' });
  t.equal(wrong.status, 400);
  t.match(wrong.text, /id="name-error"/);
  t.equal(await statusOf(api), 200, 'a wrong name deletes nothing');

  const done = await send(owner, path, { name: '  My  workspace ' });
  t.match(done, { status: 303, headers: { location: '/account?notice=workspace-deleted' } });
  t.equal(await statusOf(api), 404);
  t.equal((await api.manage('GET', '/api/v1/management/me')).status, 401, 'its key is gone');
  const other = { 'x-api-key': both };
  const left = await api.client('GET', '/api/v1/management/workspaces', undefined, other);
  t.strictSame(
    left.json.data.map(({ id }: { id: string }) => id),
    ['second'],
    'a key of two workspaces keeps the other one',
  );
  const after = await owner.call('GET', '/account?notice=workspace-deleted', undefined, html);
  t.match(after.text, 'The workspace is deleted');
  t.notMatch(after.text, 'First key');
  t.equal((await send(owner, path, { name: 'My workspace' })).status, 404, 'a second time');
  t.equal((await owner.call('GET', path, undefined, html)).status, 404);
});

t.test('the name is free again at once, and the last workspace may go', async (t) => {
  const api = await startApi(t);
  const owner = await logInOwner(api);
  await removeFirst(api);
  const account = await owner.call('GET', '/account', undefined, html);
  const url = /\/api\/v1\/organizations\/\w+\/workspaces/.exec(account.text)?.[0] ?? '';
  const made = await owner.call('POST', url, { name: 'My workspace' });
  t.match(made, { status: 200, json: { data: { name: 'My workspace' } } });
});

t.test('401, 403, 404: nobody else, and no form of another site', async (t) => {
  const api = await startApi(t);
  const manager = await addPerson(api, 'Mia', 'manager');
  const stranger = await addPerson(api, 'Sam', null);
  const name = { name: 'My workspace' };
  t.notMatch((await manager.browser.call('GET', '/account', undefined, html)).text, path);
  for (const [browser, status] of [
    [manager.browser, 403],
    [stranger.browser, 404],
  ] as const) {
    t.equal((await browser.call('GET', path, undefined, html)).status, status);
    t.equal((await send(browser, path, name)).status, status);
  }
  t.match((await send(manager.browser, path, name)).text, 'Only an owner');
  t.equal((await api.client('POST', path, name, { 'x-api-key': apiKey })).status, 403, 'no key');
  t.match(await api.client('GET', path, undefined, html), { status: 302 });

  const owner = await logInOwner(api);
  const form = new URLSearchParams(name);
  t.equal((await owner.call('POST', path, form.toString(), html)).status, 403, 'without the token');
  const { csrfToken } = (await owner.call('GET', '/api/auth/csrf')).json;
  form.set('csrfToken', csrfToken);
  for (const site of ['cross-site', 'same-site']) {
    const reply = await owner.call('POST', path, form.toString(), { ...html, 'sec-fetch-site': site });
    t.equal(reply.status, 403, site);
  }
  t.equal(await statusOf(api), 200);
});

t.test('the job deletes every row and file of it in slices, and nothing else', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  await api.addWorkspace('second');
  const others = await api.addKey({ second: 'manage' });
  const survey = { ...(await addSurvey(api, { name: 'to be deleted' })) };
  t.ok(survey.id);
  const before = await countTables(db);
  await fillWorkspace(api, MANY);
  const filled = await countTables(db);
  for (const table of await tablesOfWorkspaces())
    t.ok((filled[table] ?? 0) > 0, `fillWorkspace has rows of ${table}`);

  await removeFirst(api);
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
  const after = await countTables(db);
  for (const table of await tablesOfWorkspaces()) {
    const ofOthers = table === 'workspaces' || table === 'apiKeyPermissions' ? 1 : 0;
    t.equal(after[table], ofOthers, table);
  }
  for (const table of ['organizations', 'users', 'memberships']) t.equal(after[table], before[table], table);
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
      await removeFirst(one);
    }
    t.equal((await respond()).status, 404, version);
  }
});

t.test('two processes at once, of which one goes on alone', async (t) => {
  const env = { DATABASE_URL: await sharedDatabase(t) };
  const one = await startApi(t, { env });
  const two = await startApi(t, { env });
  await fillWorkspace(one, MANY);
  await removeFirst(one);
  const run = (api: TestApi) =>
    deleteMarked({ ...api.context, storage: one.context.storage }, () => false, log);
  await Promise.all([run(one), run(two)]);
  const left = await countTables(one.context.db);
  for (const table of ['workspaces', 'responses', 'contacts', 'deliveries', 'files'])
    t.equal(left[table], 0, table);
});

t.test('the scheduled job does it, and again when file storage is back', async (t) => {
  let isAway = true;
  const api = await startApi(t, {
    parts: ({ storage }) => ({
      storage: {
        ...storage,
        delete: async (key) => {
          if (isAway) throw new StorageUnavailable('disk_error', 'the disk is away');
          return storage.delete(key);
        },
      },
    }),
  });
  await fillWorkspace(api, 1);
  await removeFirst(api);
  await t.rejects(
    deleteMarked(api.context, () => false, log),
    StorageUnavailable,
  );
  t.equal((await countTables(api.context.db)).workspaces, 1, 'the row goes last');
  t.equal(await statusOf(api), 404);
  isAway = false;
  const jobs = startScheduledJobs(api.context, log as never);
  t.teardown(() => jobs.stop());
  await until(async () => (await countTables(api.context.db)).workspaces === 0);
  for (const key of fileKeys) t.equal(await isThere(api, key), false, key);
});

t.test('the objects of a bucket', async (t) => {
  const { location, credentials } = await startS3(t);
  const api = await startApi(t, {
    env: {
      S3_BUCKET_NAME: location.bucket,
      ...(location.endpoint === null ? {} : { S3_ENDPOINT_URL: location.endpoint }),
      S3_FORCE_PATH_STYLE: '1',
      S3_ACCESS_KEY: credentials?.accessKey ?? '',
      S3_SECRET_KEY: credentials?.secretKey ?? '',
    },
  });
  const body = { workspaceId, fileName: 'logo.png', fileType: 'image/png' };
  const { data } = (await api.manage('POST', '/api/v1/management/storage', body)).json;
  const form = new FormData();
  for (const [name, value] of Object.entries(data.presignedFields)) form.append(name, String(value));
  form.append('file', new Blob(['x'], { type: 'image/png' }), 'logo.png');
  t.equal((await fetch(data.signedUrl, { method: 'POST', body: form })).status, 201);
  const { key } = data.presignedFields;
  t.equal(await isThere(api, key), true);
  await removeFirst(api);
  await deleteMarked(api.context, () => false, log);
  t.equal(await isThere(api, key), false);
});

t.test('an upload with an earlier grant is refused', async (t) => {
  const api = await startApi(t);
  const port = await api.listen();
  const body = { workspaceId, fileName: 'logo.png', fileType: 'image/png' };
  const { data } = (await api.manage('POST', '/api/v1/management/storage', body)).json;
  await removeFirst(api);
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
  await api.addWorkspace('second');
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

  await removeFirst(api);
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
