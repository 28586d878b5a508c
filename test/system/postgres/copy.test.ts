/** `db copy` from SQLite to PostgreSQL, as an operator runs it. */
import { join } from 'node:path';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import type { Database } from '#api/db/schema.ts';
import { creatorAt } from '#test/api/events/support.ts';
import { startApi } from '#test/support/api-app.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { openTestDatabase } from '#test/support/database.ts';
import { fillWorkspace } from '#test/support/full-workspace.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { openSurvey } from '#test/support/world.ts';

const KEY = 'fbk_moved';
/** Values that are easily mistaken for others. */
const TEXTS = [
  '',
  ' ',
  'null',
  '0',
  'it\'s "quoted" \\ `so` $1 ? :name',
  'line\r\nline\ttab\u0001',
  'ä a\u0308 \u00a0',
];
TEXTS.push(
  '😀 \u{10ffff}',
  '{"a":[1,2.50,1e21,null,true,"\\u0000"],"a":1}',
  'A long answer. 😀 '.repeat(8_000),
);

async function emptyPostgres(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

const copy = (from: string, to: string) => apiCommand(['db', 'copy', '--json', '--from', from, '--to', to]);

/** All rows by table, as text. */
async function contentOf(url: string): Promise<Record<string, readonly string[]>> {
  const db = openTestDatabase(url);
  const content: Record<string, readonly string[]> = {};
  for (const { name } of await db.introspection.getTables()) {
    const { rows } = await sql<object>`select * from ${sql.table(name)}`.execute(db);
    const texts = rows.map((row) => JSON.stringify(Object.entries(row).toSorted()));
    if (!name.startsWith('migrations')) content[name] = texts.toSorted();
  }
  await db.destroy();
  return content;
}

t.test('every row of every table is unchanged; a copy that fails leaves the target empty', async (t) => {
  const folder = temporaryFolder(t);
  const from = `file:${join(folder, 'source.sqlite')}`;
  const server = await emptyPostgres(t);
  const api = await startApi(t, { env: { DATABASE_URL: from } });
  await fillWorkspace(api, 150);
  const { db } = api.context;
  await db
    .insertInto('secrets')
    .values(TEXTS.map((value, i) => ({ name: `n${i}`, value, createdAt: '' })))
    .execute();
  await db.updateTable('files').set({ size: Number.MAX_SAFE_INTEGER }).execute();
  await api.close();

  const change = async (work: (source: Database) => Promise<unknown>): Promise<void> => {
    const source = openTestDatabase(from);
    await sql`pragma foreign_keys = off`.execute(source);
    await work(source);
    await source.destroy();
  };
  const setCode = (code: string) => (source: Database) =>
    source.updateTable('languages').set({ code }).execute();
  const setWorkspace = (workspaceId: string) => (source: Database) =>
    source.updateTable('languages').set({ workspaceId }).execute();
  for (const [bad, good, message] of [
    [setCode('a\0b'), setCode('de'), /^the target refuses rows of languages: .*0x00/],
    [setWorkspace('nobody'), setWorkspace('ws1'), /rows of languages: .* violates foreign key constraint/],
  ] as const) {
    await change(bad);
    const { code, stderr } = await copy(from, server);
    t.equal(code, 1);
    t.match(stderr, message);
    await change(good);
  }

  const { code, stdout, stderr } = await apiCli(['db', 'copy', '--from', from, '--to', server]);
  t.equal(code, 0, stderr);
  t.match(stdout, /^responses +150$/m);
  const expected = await contentOf(from);
  t.ok(Object.values(expected).filter(({ length }) => length > 0).length > 15);
  t.strictSame(await contentOf(server), expected);
  const occupied = await copy(from, server);
  t.equal(occupied.code, 1);
  t.match(occupied.stderr, 'the target is not empty; name an empty database');
});

t.test('an API moves with its data; while it runs, there is no copy, and the other way round', async (t) => {
  const folder = temporaryFolder(t);
  const from = `file:${join(folder, 'source.sqlite')}`;
  const server = await emptyPostgres(t);
  const env = {
    ...{ API_PORT: '0', STORAGE_PATH: join(folder, 'uploads') },
    ...{ BOOTSTRAP_API_KEY: KEY, BOOTSTRAP_WORKSPACE_ID: 'ws1' },
  };
  const startApi = (url: string) => {
    const api = start(['api/main.ts'], { ...env, DATABASE_URL: url });
    t.teardown(() => api.stop());
    return api;
  };
  const first = startApi(from);
  const [, before = ''] = await first.until(/API ready on (\S+)/);
  await creatorAt(before, KEY)('management/surveys', { workspaceId: 'ws1', ...openSurvey });
  const refused = await copy(from, server);
  t.equal(refused.code, 1);
  t.match(refused.stderr, /source\.sqlite is in use, most likely by the API; stop it first/);
  t.equal(await first.stop(), 0);

  const source = openTestDatabase(from);
  await sql`pragma journal_mode = delete`.execute(source);
  await source.transaction().execute(async () => {
    const second = startApi(from);
    t.equal(await second.ended(), 1);
    t.match(second.output(), 'The API cannot start:');
  });
  await source.destroy();

  const moved = await copy(from, server);
  t.equal(moved.code, 0, moved.stderr);
  const api = startApi(server);
  const [, address = ''] = await api.until(/API ready on (\S+)/);
  t.notMatch(api.output(), 'API key', 'the credentials came with the data, so none are printed');
  const list = await fetch(`${address}/api/v1/management/surveys`, { headers: { 'x-api-key': KEY } });
  t.equal(JSON.parse(await list.text()).data.length, 1, 'the copied key is accepted');
});
