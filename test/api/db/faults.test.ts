/** The reply, the log and readiness name a full disk and a damaged file. */
import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { buildApp } from '#api/app.ts';
import { openDatabase } from '#api/db/database.ts';
import { createDatabaseHealth } from '#api/db/health.ts';
import { migrate } from '#api/db/migrate.ts';
import { type ApiOptions, addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly problem?: string;
}

async function apiOn(t: Test, path: string | null, clock?: ApiOptions['clock']) {
  const lines: Line[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const health = createDatabaseHealth(clock ?? Date.now, log);
  const location = path === null ? ({ kind: 'memory' } as const) : ({ kind: 'file', path } as const);
  const db = openDatabase(location, health.note);
  await migrate(db);
  const api = await startApi(t, { parts: () => ({ db, health }), log, ...(clock ? { clock } : {}) });
  t.teardown(() => db.destroy());
  return { api, db, lines };
}

const answer = (api: TestApi, surveyId: string, text: string) =>
  api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId,
    finished: true,
    data: { q1: text },
  });

const problemsIn = (lines: readonly Line[]) =>
  lines.filter(({ level }) => level >= 50).map(({ msg, problem }) => `${problem}: ${msg}`);

t.test('a full database: 503 with the reason, one log line, and recovery without a restart', async (t) => {
  let now = Date.UTC(2026, 0, 1);
  const { api, db, lines } = await apiOn(t, null, () => now);
  const survey = await addSurvey(api);
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db);
  await sql`pragma max_page_count = ${sql.raw(String(rows[0]?.page_count))}`.execute(db);
  const long = 'x'.repeat(60_000);
  const replies = [];
  for (let i = 0; i < 4; i += 1) replies.push(await answer(api, survey.id, long));
  t.match(replies.at(-1), {
    status: 503,
    headers: { 'retry-after': '2' },
    json: { details: { error: 'database_full' } },
  });
  t.equal((await api.manage('GET', `/api/v1/management/surveys/${survey.id}`)).status, 200, 'reads work');
  t.match(problemsIn(lines), [/^database_full: DATABASE_URL: there is no space left .*free some/]);
  t.notMatch(JSON.stringify(lines), /xxxx/, 'the log has no content of the response');
  for (let i = 0; i < 2; i += 1) {
    now += 1_000;
    t.match(
      await api.client('GET', '/ready'),
      { status: 503, json: { status: 'unavailable', problem: 'database_full' } },
      'not ready, although a small write fits into a page that exists',
    );
  }

  await sql`pragma max_page_count = 1000000`.execute(db);
  t.equal((await answer(api, survey.id, long)).status, 200, 'no transaction is left open');
  now += 10_000;
  t.match(await api.client('GET', '/ready'), { status: 200, json: { status: 'ready' } });
  t.ok(lines.some(({ level, msg }) => level === 30 && /works again/.test(msg)));
});

/** Overwrites the file from this page on. */
function damage(path: string, firstPage: (pages: number) => number): void {
  const pages = statSync(path).size / 4096;
  const file = openSync(path, 'r+');
  for (let page = firstPage(pages); page < pages; page += 1)
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096);
  closeSync(file);
}

t.test('a damaged file: 503 with the reason, and not ready until a restart', async (t) => {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const before = await apiOn(t, path);
  const survey = await addSurvey(before.api);
  for (let i = 0; i < 40; i += 1) await answer(before.api, survey.id, 'x'.repeat(20_000));
  await sql`pragma wal_checkpoint(truncate)`.execute(before.db);
  await before.api.close();
  await before.db.destroy();
  // The schema is at the beginning of the file, the answers are at the end.
  damage(path, (pages) => Math.floor(pages / 2));
  const lines: Line[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  let now = Date.now();
  const health = createDatabaseHealth(() => now, log);
  const db = openDatabase({ kind: 'file', path }, health.note);
  t.teardown(() => db.destroy());
  const api = await startApi(t);
  const app = await buildApp({ ...api.context, db, health }, log);
  t.teardown(() => app.close());
  const reply = await app.inject({
    url: `/api/v1/management/responses?surveyId=${survey.id}`,
    headers: { 'x-api-key': 'fbk_test' },
  });
  t.equal(reply.statusCode, 503, reply.body);
  t.match(reply.json(), {
    code: 'service_unavailable',
    message: /does not work/,
    details: { error: 'database_damaged' },
  });
  t.match(problemsIn(lines)[0], /^database_damaged: DATABASE_URL: the database is damaged; stop the service/);
  for (let i = 0; i < 2; i += 1) {
    now += 60_000;
    const ready = await app.inject({ url: '/ready' });
    t.match([ready.statusCode, ready.json()], [503, { problem: 'database_damaged' }]);
  }
});

t.test('a start on a damaged file prints one sentence', async (t) => {
  const path = join(temporaryFolder(t), 'db.sqlite');
  const db = openDatabase({ kind: 'file', path });
  await migrate(db);
  await sql`pragma wal_checkpoint(truncate)`.execute(db);
  await db.destroy();
  damage(path, () => 1);
  const api = start(['api/main.ts'], { API_PORT: '0', DATABASE_URL: `file:${path}` });
  t.teardown(() => api.stop('SIGKILL'));
  t.equal(await api.ended(), 1);
  const lines = api.output().trimEnd().split('\n');
  const [said, ...more] = lines.filter((line) => !line.startsWith('{'));
  t.match(said, /^The API cannot start: DATABASE_URL: the database is damaged; .*restore a backup/);
  t.strictSame(more, []);
});
