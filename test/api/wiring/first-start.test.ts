/** Readiness means that the credentials exist. */
import { join } from 'node:path';
import { sql } from 'kysely';
import { pino } from 'pino';
import t from 'tap';
import { buildApp } from '#api/app.ts';
import { apiKey, startApi } from '#test/support/api-app.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

t.test('503 with Retry-After on every path until it is ready, without checking keys', async (t) => {
  const api = await startApi(t);
  let isReady = false;
  const app = await buildApp(api.context, pino({ level: 'silent' }), () => isReady);
  t.teardown(() => app.close());
  const urls = ['/health', '/api/v2/health', '/api/v1/management/me', '/api/v3/surveys', '/nothing'];
  const ask = (url: string) => app.inject({ url, headers: { 'x-api-key': apiKey } });
  for (const url of urls) {
    const reply = await ask(url);
    t.equal(reply.statusCode, 503, url);
    t.equal(reply.headers['retry-after'], '2');
  }
  isReady = true;
  t.equal((await ask('/health')).statusCode, 200);
  t.equal((await ask('/api/v1/management/me')).statusCode, 200);
});

t.test('two first starts at once on one database: both run, one prints the credentials', async (t) => {
  const folder = temporaryFolder(t);
  const database = await sharedDatabase(t, 'empty');
  const ports = [await freePort(), await freePort()];
  const processes = ports.map((port) =>
    start(['api/main.ts'], {
      API_PORT: String(port),
      DATABASE_URL: database,
      STORAGE_PATH: join(folder, 'uploads'),
      BOOTSTRAP_API_KEY: 'fbk_chosen',
      BOOTSTRAP_PASSWORD: 'Password1',
    }),
  );
  t.teardown(() => Promise.all(processes.map((one) => one.stop('SIGKILL'))));
  await Promise.all(processes.map((one) => one.until(/API ready/)));
  for (const port of ports) {
    const reply = await fetch(`http://127.0.0.1:${port}/api/v1/management/me`, {
      headers: { 'x-api-key': 'fbk_chosen' },
    });
    t.equal(reply.status, 200);
  }
  t.strictSame(await Promise.all(processes.map((one) => one.stop())), [0, 0]);
  const notices = processes.map((one) => one.output().split('First start').length - 1);
  t.equal(notices[0] === 1 ? notices[1] : notices[0], 0, notices.join());
  t.equal(Math.max(...notices), 1);
});

t.test('a database of a time before the first release: exit 1 with one sentence', async (t) => {
  const database = await sharedDatabase(t, 'empty');
  const db = openTestDatabase(database);
  await sql`create table "migrations" ("name" text primary key, "timestamp" text not null)`.execute(db);
  await sql`insert into "migrations" values ('001-init', ''), ('002-contact-attribute-list', '')`.execute(db);
  await db.destroy();
  const api = start(['api/main.ts'], { API_PORT: '0', DATABASE_URL: database });
  t.teardown(() => api.stop('SIGKILL'));
  t.equal(await api.ended(), 1);
  const [said, ...more] = api
    .output()
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('{'));
  t.match(said, /^The API cannot start: DATABASE_URL: the database is of another version .*give a new file/);
  t.strictSame(more, []);
});
