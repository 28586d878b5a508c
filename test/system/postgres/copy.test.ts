/** `db copy` from SQLite to PostgreSQL and back, as an operator runs it. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { differences, execute, oddSource, twoAtOnce } from '#test/api/db/copy/copies.ts';
import { apiCommand } from '#test/support/cli.ts';
import { ask, createPostgresDatabase } from '#test/support/postgres.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

async function emptyPostgres(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

const copy = (from: string, to: string, ...options: readonly string[]) =>
  apiCommand(['db', 'copy', '--json', '--from', from, '--to', to, ...options]);

t.test('there and back: every row of every table is unchanged', async (t) => {
  const { folder, path, from, rows } = await oddSource(t);
  const server = await emptyPostgres(t);
  const there = await copy(from, server);
  t.equal(there.code, 0, there.stderr);
  t.match(JSON.parse(there.stdout), { isSame: true, rows, resumedAt: 0 });
  const returned = join(folder, 'returned.sqlite');
  const back = await copy(server, `file:${returned}`);
  t.equal(back.code, 0, back.stderr);
  t.strictSame(differences(path, returned), [], 'SQLite compares the files as equal');

  const second = await emptyPostgres(t);
  const across = await copy(server, second);
  t.equal(across.code, 0, across.stderr);

  for (const [what, statement] of [
    [
      'a changed value',
      `update "contacts" set "userId" = 'somebody else' where "id" = (select min("id") from "contacts")`,
    ],
    ['a missing row', `delete from "displays" where "id" = (select max("id") from "displays")`],
    ['a changed number', `update "storageUsage" set "bytes" = "bytes" + 1 where "workspaceId" = ''`],
  ] as const) {
    await ask(second, statement);
    const table = /"(\w+)"/.exec(statement)?.[1] ?? '';
    const found = await apiCommand(['db', 'verify', '--from', from, '--to', second]);
    t.equal(found.code, 1, what);
    t.match(found.stdout, new RegExp(`^${table} .* DIFFERENT$`, 'm'), what);
  }

  const occupied = await copy(from, second);
  t.equal(occupied.code, 1);
  t.match(occupied.stderr, /the target has other data/);
  const backup = await apiCommand(['db', 'backup', join(folder, 'x'), '--from', server]);
  t.equal(backup.code, 2);
  t.match(backup.stderr, /pg_dump --format=custom/);
});

t.test('kill -9 in the middle, in both directions: the same command resumes', async (t) => {
  const { folder, path, from, rows } = await oddSource(t, (table) => (table === 'responses' ? 20_000 : 100));
  const server = await emptyPostgres(t);
  const returned = join(folder, 'returned.sqlite');
  for (const [source, target] of [
    [from, server],
    [server, `file:${returned}`],
  ] as const) {
    for (const part of [0.3, 0.8]) {
      const killed = start(['test/support/killed-copy.ts', source, target, String(Math.floor(rows * part))]);
      t.equal(await killed.ended(), null, killed.output());
    }
    const api = start(['api/main.ts'], { DATABASE_URL: target, API_PORT: '0' });
    t.equal(await api.ended(), 1);
    t.match(api.output(), 'The API cannot start: DATABASE_URL: a copy into this database has not ended');
    const { code, stdout, stderr } = await copy(source, target);
    t.equal(code, 0, stderr);
    const copied = JSON.parse(stdout);
    t.equal(copied.rows + copied.resumedAt, rows);
    t.ok(copied.resumedAt >= rows * 0.8, `resumed at ${copied.resumedAt} of ${rows}`);
  }
  t.strictSame(differences(path, returned), []);
});

t.test(
  'an API moves to PostgreSQL with its data; while it runs there, only a rehearsal is possible',
  async (t) => {
    const folder = temporaryFolder(t);
    const from = `file:${join(folder, 'source.sqlite')}`;
    const server = await emptyPostgres(t);
    const env = { API_PORT: '0', STORAGE_PATH: join(folder, 'uploads'), BOOTSTRAP_API_KEY: 'fbk_moved' };
    const first = start(['api/main.ts'], { ...env, DATABASE_URL: from });
    await first.until(/API ready/);
    t.equal(await first.stop(), 0);
    const moved = await copy(from, server);
    t.equal(moved.code, 0, moved.stderr);

    const api = start(['api/main.ts'], { ...env, DATABASE_URL: server });
    t.teardown(() => api.stop());
    const [, address = ''] = await api.until(/API ready on (\S+)/);
    const me = await fetch(`${address}/api/v1/management/me`, { headers: { 'x-api-key': 'fbk_moved' } });
    t.equal(me.status, 200, 'the copied key is accepted');
    const back = `file:${join(folder, 'back.sqlite')}`;
    const refused = await copy(server, back);
    t.equal(refused.code, 1);
    t.match(
      refused.stderr,
      /^the database test_\w+ is in use by another process, most likely the API; stop it first/,
    );
    const rehearsal = await copy(server, back, '--live');
    t.equal(rehearsal.code, 0, rehearsal.stderr);
  },
);

t.test('names the values that PostgreSQL cannot store, and copies nothing', async (t) => {
  const { path, from } = await oddSource(t);
  execute(path, `update "tags" set "name" = 'a' || char(0) || 'b' where "rowid" = 3`);
  const server = await emptyPostgres(t);
  const { code, stderr } = await copy(from, server);
  t.equal(code, 1);
  t.match(stderr, /the column name of tags \S+ has a NUL character, which PostgreSQL cannot store/);
  execute(path, `update "tags" set "name" = 'a b' where "rowid" = 3`);
  const again = await copy(from, server);
  t.equal(again.code, 0, again.stderr);
});

t.test('of two copies into one target, one completes and the other one stops', async (t) => {
  await twoAtOnce(t, parseDatabaseUrl(await emptyPostgres(t), '/'));
});

t.test('exit 1: the server is down', async (t) => {
  const { from } = await oddSource(t, () => 1);
  const { code, stderr } = await copy(from, 'postgres://floodgate:secret@127.0.0.1:9/floodgate');
  t.equal(code, 3);
  t.match(stderr, /^the server at 127\.0\.0\.1:9 does not answer/);
  t.notMatch(stderr, 'secret');
});
