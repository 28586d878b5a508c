/** Another process writes to the same SQLite file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { migrate } from '#api/db/migrate.ts';
import type { Database } from '#api/db/schema.ts';
import { openSqlite } from '#api/db/sqlite.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

async function setUp(t: Test, busyTimeoutMs: number) {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const db = openSqlite(path, () => undefined, busyTimeoutMs);
  t.teardown(() => db.destroy());
  await migrate(db);
  const other = new SqliteDatabase(path);
  t.teardown(() => other.close());
  return { db, other };
}

const insertSecret = (db: Database, name: string) =>
  db.insertInto('secrets').values({ name, value: '', createdAt: '' }).execute();

t.test('statements and transactions wait for the other writer, timers do not', async (t) => {
  const { db, other } = await setUp(t, 600_000);
  other.exec('begin immediate');
  const write = insertSecret(db, 'statement');
  const transaction = db.transaction().execute((trx) => insertSecret(trx, 'transaction'));
  for (let i = 0; i < 5; i += 1) await sleep(1);
  other.exec('commit');
  await Promise.all([write, transaction]);
  t.equal((await db.selectFrom('secrets').select('name').execute()).length, 2);
});

t.test('a new file opens when another process is creating it', async (t) => {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const thread = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads');
    const other = new (require('better-sqlite3'))(workerData);
    other.exec('begin immediate; create table t (a)');
    parentPort.postMessage('locked');
    setTimeout(() => other.exec('commit'), 300);`,
    { eval: true, workerData: path },
  );
  await once(thread, 'message');
  await openSqlite(path, () => undefined).destroy();
  await once(thread, 'exit');
  t.pass();
});

t.test('a writer that does not end: 503 with Retry-After, and reads go on', async (t) => {
  const { db, other } = await setUp(t, 100);
  const api = await startApi(t, { parts: () => ({ db }) });
  const survey = await addSurvey(api);
  const submit = () =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      ...{ surveyId: survey.id, finished: true, data: { q1: 'x' } },
    });
  other.exec('begin immediate');
  const replies = await Promise.all([
    submit(),
    api.manage('PUT', `/api/v1/management/surveys/${survey.id}`, { name: 'New' }),
  ]);
  for (const reply of replies) {
    t.match(reply, { status: 503, headers: { 'retry-after': '2' } });
    t.match(reply.json, { code: 'service_unavailable', message: /busy/, details: {} });
  }
  t.equal((await api.manage('GET', '/api/v1/management/me')).status, 200);
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
  const waited = openSqlite(file, () => undefined);
  t.teardown(() => waited.destroy());
  await migrate(waited);
  if (holder.exitCode === null) await once(holder, 'exit');
  t.equal(holder.exitCode, 0);
});
