/** Callers get these replies while another process holds the write lock. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { addSurvey, apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const path = join(temporaryFolder(t), 'db.sqlite');
const db = openDatabase({ kind: 'file', path }, { busyTimeoutMs: 100 });
await migrate(db);
const api = await startApi(t, { parts: () => ({ db }) });
const survey = await addSurvey(api);
const other = new SqliteDatabase(path);
t.teardown(() => other.close());

const submit = () =>
  api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId: survey.id,
    finished: true,
    data: { q1: 'x' },
  });

t.test('503 with Retry-After for a write, in the error shape of its surface', async (t) => {
  other.exec('begin immediate');
  const [client, v1] = await Promise.all([
    submit(),
    api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, { name: 'New' }),
  ]);
  for (const reply of [client, v1]) {
    t.equal(reply.status, 503);
    t.equal(reply.headers['retry-after'], '2');
    t.match(reply.json, { code: 'service_unavailable', message: /busy/, details: {} });
  }
  other.exec('commit');
  t.equal((await submit()).status, 200, 'the same response is accepted when the lock is free');
});

t.test('a start waits while another process creates the tables of the same file', async (t) => {
  const file = join(temporaryFolder(t), 'db.sqlite');
  // Opening blocks this process, so another one holds the lock. It locks the whole file, as a change of the journal
  // mode does.
  const program = `
    import SqliteDatabase from 'better-sqlite3';
    const db = new SqliteDatabase(${JSON.stringify(file)});
    db.exec('create table a (b); begin exclusive');
    process.send('held');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    db.exec('commit');`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: projectRoot,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await once(holder, 'message');
  const waited = openDatabase({ kind: 'file', path: file });
  t.teardown(() => waited.destroy());
  await migrate(waited);
  if (holder.exitCode === null) await once(holder, 'exit');
  t.equal(holder.exitCode, 0);
});

t.test('reads with an API key go on, and lastUsedAt is written later', async (t) => {
  await db.updateTable('apiKeys').set({ lastUsedAt: null }).execute();
  other.exec('begin immediate');
  const reply = await api.manage('GET', '/api/v1/management/me');
  t.equal(reply.status, 200, apiKey);
  const lastUsedAt = async () =>
    (await db.selectFrom('apiKeys').select('lastUsedAt').executeTakeFirstOrThrow()).lastUsedAt;
  t.equal(await lastUsedAt(), null);
  other.exec('commit');
  await api.manage('GET', '/api/v1/management/me');
  while ((await lastUsedAt()) === null) await new Promise((resolve) => setImmediate(resolve));
  t.pass('lastUsedAt was written');
});
